#!/bin/sh
# Puts Debian forky's Bazel 7 (bzlmod) under a private prefix of an older Debian, without root
# and without touching the system: the packages are unpacked, not installed, and the few ELF
# programs are pointed at forky's own dynamic loader and libraries.
#
#   fetch_bazel7.sh PREFIX     -> PREFIX/bazel is the program to run
set -eu
prefix=$1
suite=${BAZEL7_SUITE:-forky}
# The mirror this machine already uses for its main archive.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' |
  awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')}
[ -n "$mirror" ] || { echo "fetch_bazel7.sh: no Debian mirror configured; set DEBIAN_MIRROR" >&2; exit 1; }
architecture=$(dpkg --print-architecture)
case $architecture in
  amd64) multiarch=x86_64-linux-gnu ;;
  arm64) multiarch=aarch64-linux-gnu ;;
  *) echo "fetch_bazel7.sh: no private Bazel 7 for $architecture; use BAZELW_MODE=debian" >&2; exit 1 ;;
esac

[ -x "$prefix/bazel" ] && exit 0
mkdir -p "$prefix"
work=$(mktemp -d "$prefix/tmp.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
: > "$work/state/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$work/sources.list"

apt() {
  apt-get -qq -o Dir::State="$work/state" -o Dir::State::status="$work/state/status" \
    -o Dir::Cache="$work/cache" -o Dir::Etc::SourceList="$work/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    -o Acquire::Check-Valid-Until=false "$@"
}
apt update
# The closure of the client and the server, as apt resolves it, less what a C++ build does not
# need or the host has: those are declared installed in a private dpkg status file.
for stub in build-essential default-jdk-headless java-common python3 unzip zlib1g-dev \
    protobuf-compiler-grpc-java-plugin protobuf-compiler libjs-jquery node-core-js node-html5shiv \
    ca-certificates-java junit4 ant libbackport9-java; do
  printf 'Package: %s\nStatus: install ok installed\nVersion: 99:99\nArchitecture: all\nMulti-Arch: foreign\nMaintainer: none\nDescription: stub\n\n' \
    "$stub" >> "$work/state/status"
done
apt install -y --download-only --no-install-recommends \
  bazel-bootstrap bazel-rules-shell openjdk-21-jre-headless patchelf > /dev/null
cd "$work"
for deb in cache/archives/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
rm -rf "$work/root/usr/share/doc" "$work/root/usr/share/man"

root=$prefix/root
rm -rf "$root"
mv "$work/root" "$root"
libs=$root/usr/lib/$multiarch
# Where the dynamic loader lies differs by architecture (ld-linux-x86-64.so.2, ld-linux-aarch64.so.1).
loader=$(find "$root/usr/lib" "$root/usr/lib64" -name 'ld-linux-*.so.*' 2> /dev/null | head -n 1)
jre=$root/usr/lib/jvm/java-21-openjdk-$architecture
patchelf="$loader --library-path $libs $root/usr/bin/patchelf"
retarget() {  # PROGRAM EXTRA_RPATH
  $patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$2$libs" "$1"
}
for program in "$root"/usr/bin/bazel "$root/usr/libexec/$multiarch/bazel"/*; do retarget "$program" ""; done
for program in "$jre"/bin/java "$jre"/lib/jspawnhelper; do
  # shellcheck disable=SC2016 # $ORIGIN is for the dynamic loader
  retarget "$program" '$ORIGIN:$ORIGIN/../lib:$ORIGIN/../lib/server:'
done
# The JRE's configuration is a set of absolute links into /etc.
find "$jre" -type l -lname '/etc/*' | while read -r link; do
  ln -sfn "$root$(readlink "$link")" "$link"
done

# The server's class path.
classpath=$root/usr/share/bazel/bazel_classpath_debian_depends.txt
printf '/usr/share/java/%s.jar\n' perfmark-api opencensus-api opencensus-contrib-grpc-metrics \
  opencensus-contrib-http-util >> "$classpath"
sed -i "s|^/usr/share/java|$root/usr/share/java|" "$classpath"

cat > "$prefix/bazelrc" <<RC
startup --install_base=$root/usr/share/bazel
startup --trust_install_base
startup --server_javabase=$jre
common --override_module=bazel_features=$root/usr/share/bazel/tools/features
common --override_module=bazel_skylib=$root/usr/share/bazel/tools/skylib
common --override_module=platforms=$root/usr/share/bazel/tools/platforms
common --override_module=rules_cc=$root/usr/share/bazel/rules/cc
common --override_module=rules_java=$root/usr/share/bazel/rules/java
common --override_module=rules_license=$root/usr/share/bazel/rules/license
common --override_module=rules_proto=$root/usr/share/bazel/rules/proto
common --override_module=rules_python=$root/usr/share/bazel/rules/python
common --override_module=rules_shell=$root/usr/share/bazel/rules/shell
RC
cat > "$work/bazel" <<SH
#!/bin/sh
exec "$root/usr/bin/bazel" --nosystem_rc --bazelrc="$prefix/bazelrc" "\$@"
SH
chmod +x "$work/bazel"
mv "$work/bazel" "$prefix/bazel"
