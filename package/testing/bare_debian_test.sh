#!/usr/bin/env bash
# Tries what //:dist and //:wheel made on a Debian 12 that has neither compiler, nor Bazel, nor
# protobuf, nor Python: in a chroot, made by debootstrap once and kept beside the builds. The wheel
# is installed by pip into a fresh environment of this machine's Python, without network.
#
#   bare_debian_test.sh FOLDER_WITH_PACKAGES FOLDER_FOR_THE_CHROOT
set -eu
packages=$(realpath "$1")
mkdir -p "$2"
bare=$(realpath "$2")/bare_debian_12
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$bare/try"' EXIT

fail() { echo "bare_debian_test: $*" >&2; exit 1; }

if [ ! -e "$bare/complete" ]; then
  rm -rf "$bare"
  debootstrap --variant=minbase bookworm "$bare" > "$scratch/log" 2>&1 || {
    tail -n 5 "$scratch/log" >&2
    fail "debootstrap failed"
  }
  touch "$bare/complete"
fi
rm -rf "$bare/try" && mkdir "$bare/try"
in_bare() { chroot "$bare" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/try sh -euc "cd /try; $1"; }
for tool in cc gcc bazel python3 protoc; do
  in_bare "! command -v $tool" > /dev/null || fail "the chroot has $tool"
done

# Runs the program that is called $1 there on the bundled example.
try_program() {
  local libraries
  libraries=$(in_bare "ldd $1" | sed -E 's/^[[:space:]]*([^ ]+) .*/\1/; s#.*/##' | sort | tr '\n' ' ')
  case " $libraries" in *" libc.so.6 "*) ;; *) fail "ldd $1 says: $libraries" ;; esac
  for library in $libraries; do
    case $library in
      linux-vdso.so.1 | ld-linux-*.so.* | libc.so.6 | libm.so.6 | libstdc++.so.6 | libgcc_s.so.1) ;;
      *) fail "$1 needs $library" ;;
    esac
  done
  in_bare "rm -rf meridian_out; $1 --version; $1 combine > summary.txt 2> log.txt; head -n 3 summary.txt"
  grep -q '</html>' "$bare/try/meridian_out/report.html" || fail "$1 wrote no report"
}

cp "$packages"/meridian-*.tar.gz "$packages"/meridian_*.deb "$bare/try/"
in_bare "tar xzf meridian-*.tar.gz && mv meridian-*/ unpacked"
try_program /try/unpacked/bin/meridian
in_bare "dpkg -i meridian_*.deb > /dev/null"
try_program /usr/bin/meridian
in_bare "test -s /usr/share/man/man1/meridian-combine.1.gz && dpkg -r meridian > /dev/null && test ! -e /usr/bin/meridian"

python3 - "$bare/try/unpacked/bin/meridian" "$packages"/meridian-*.whl << 'END' || fail "too large or too slow"
import os, resource, subprocess, sys
program, wheel = sys.argv[1:]
STARTS = 50
for _ in range(STARTS):
    subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
start_ms = 1e3 * (used.ru_utime + used.ru_stime) / STARTS
sizes = [os.path.getsize(path) / 1e6 for path in (program, wheel)]
print(f"program {sizes[0]:.1f} MB, wheel {sizes[1]:.1f} MB, start {start_ms:.1f} ms CPU")
sys.exit(not (sizes[0] <= 25 and sizes[1] <= 15 and start_ms <= 20))
END

python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$packages"/meridian-*.whl
run=$bare/try/unpacked/share/meridian/examples/one_machine/tp_cuda4_skewed
cat > "$scratch/same.py" << 'END'
# The JSON of the function and that of the command are equal, but for the sizes of files that say
# how long stages took.
import re, shutil, subprocess, sys
import meridian
def without_sizes(text):
    return re.sub(r'"bytes": [0-9]+', "", text)
run_dir, output_dir, program = sys.argv[1:]
result = meridian.combine(run_dir, output_dir)
assert result.report_html.is_file()
shutil.rmtree(output_dir)
printed = subprocess.run([program, "combine", "--run_dir=" + run_dir, "--output_dir=" + output_dir, "--json"],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
assert without_sizes(result.text) == without_sizes(printed), "the package and the program differ"
print(result.findings[0].headline)
END
(cd "$scratch" && venv/bin/python same.py "$run" "$scratch/out" venv/bin/meridian)
echo "archive, package and wheel work"
