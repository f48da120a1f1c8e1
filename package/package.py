# SPDX-License-Identifier: Apache-2.0
"""Installs the program, or packs it: the same inputs make the same bytes.

  package.py --version=1.2.3 --program=PATH --prefix=DIRECTORY
  package.py --version=1.2.3 --program=PATH --machine=x86_64 --tar=FILE --deb=FILE

Documents, licences and the example are taken from the current folder, which is the repository's, as
Bazel has it for its actions and programs.
"""
import argparse
import gzip
import hashlib
import io
import os
import pathlib
import platform
import re
import subprocess
import tarfile

DOC = "share/doc/meridian"
DEBIAN_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}

CONTROL = """Package: meridian
Version: {version}
Architecture: {machine}
Maintainer: The Meridian developers <meridian@example.org>
Installed-Size: {kibibytes}
Depends: libc6 (>= {libc}), libgcc-s1 (>= 3.0), libstdc++6 (>= 12)
Section: science
Priority: optional
Description: profiles of distributed training jobs on one clock
 Puts the profiles of a job's hosts on one clock with a stated uncertainty,
 checks happens-before of every collective, finds the critical path across
 ranks, exports Chakra execution traces and simulates the network.
"""


def run(program, *arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, check=True,
                          env={}).stdout.decode()


def commands_of(page):
    """Returns the commands that a help page lists."""
    section = re.search(r"\nCommands:\n((?:  .*\n)*)", page)
    names = re.findall(r"^  (\w+)", section.group(1), re.M) if section else []
    return [name for name in names if name != "help"]


def roff(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def man_page(name, page, version):
    """Makes a manual page of a help page: a summary, usage, lists in two columns, examples."""
    summary, usage, *sections = page.rstrip("\n").split("\n\n")
    one_line = " ".join(summary.split("\n"))
    text = (f'.TH {name.upper()} 1 "" "meridian {version}"\n.SH NAME\n{name} \\- '
            f"{roff(one_line)}\n.SH SYNOPSIS\n{roff(usage.replace('Usage: ', '', 1))}\n")
    for section in sections:
        title, *lines = section.split("\n")
        text += f".SH {title.rstrip(':').upper()}\n"
        if title == "Examples:":
            text += ".nf\n" + roff("\n".join(lines)) + "\n.fi\n"
            continue
        for line in lines:
            item = re.fullmatch(r"  (\S+)  +(.*)", line)
            text += f".TP\n.B {roff(item[1])}\n{roff(item[2])}\n" if item else roff(line.strip()) + "\n"
    return text.encode()


def pages(program, version, names=()):
    """Yields the manual pages of the program and of all its commands."""
    page = run(program, "help", *names)
    title = "-".join(["meridian", *names])
    yield f"share/man/man1/{title}.1.gz", gzip.compress(man_page(title, page, version), mtime=0)
    for name in commands_of(page):
        yield from pages(program, version, [*names, name])


def contents(program, version):
    """Returns the bytes and the mode of every file, by its path below the prefix."""
    program = os.path.abspath(program)
    files = {"bin/meridian": (pathlib.Path(program).read_bytes(), 0o755)}
    texts = {path: data for path, data in pages(program, version)}
    for path in ["README.md", "CHANGELOG.md", *sorted(pathlib.Path("docs").rglob("*.*"))]:
        texts[f"{DOC}/{path}"] = pathlib.Path(path).read_bytes()
    texts[f"{DOC}/copyright"] = b"\n".join(pathlib.Path(path).read_bytes()
                                           for path in ["LICENSE", "third_party/NOTICES.txt"])
    for path in sorted(pathlib.Path("examples/one_machine").rglob("*.pb.gz")):
        texts[f"share/meridian/{path.as_posix()}"] = path.read_bytes()
    files.update((path, (data, 0o644)) for path, data in texts.items())
    return files


def install(files, prefix):
    for path, (data, mode) in files.items():
        target = prefix / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # A program that runs can be replaced, but not written to.
        fresh = target.with_name(target.name + ".new")
        fresh.write_bytes(data)
        fresh.chmod(mode)
        fresh.replace(target)


def tar_gz(files, folder):
    """Returns a compressed archive of the files and of the folders that they lie in."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        folders = set()
        for path, (data, mode) in sorted(files.items()):
            path = f"{folder}/{path}"
            for parent in reversed(pathlib.PurePosixPath(path).parents):
                if str(parent) != "." and parent not in folders:
                    folders.add(parent)
                    entry = tarfile.TarInfo(f"{parent}/")
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(entry)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


def deb(files, version, machine):
    """Returns a Debian package: an ar archive of a version, a control and a data archive."""
    kibibytes = sum(len(data) // 1024 + 1 for data, _ in files.values())
    control = CONTROL.format(version=version, machine=DEBIAN_MACHINES[machine],
                             kibibytes=kibibytes, libc=platform.libc_ver()[1]).encode()
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  usr/{path}\n"
                   for path, (data, _) in sorted(files.items())).encode()
    members = [("debian-binary", b"2.0\n"),
               ("control.tar.gz", tar_gz({"control": (control, 0o644), "md5sums": (sums, 0o644)}, ".")),
               ("data.tar.gz", tar_gz(files, "./usr"))]
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) % 2)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--machine", choices=sorted(DEBIAN_MACHINES))
    for name in ("prefix", "tar", "deb"):
        parser.add_argument("--" + name, type=pathlib.Path)
    options = parser.parse_args()
    if options.prefix is None and options.tar is None and options.deb is None:
        parser.error("give --prefix=DIRECTORY, the folder for bin/ and share/, e.g. "
                     "./bazelw run //:install -- --prefix=$HOME/.local")
    files = contents(options.program, options.version)
    if options.prefix is not None:
        # Relative paths are the user's, also under `bazel run`.
        prefix = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", ""), options.prefix)
        install(files, prefix)
        print(f"installed {prefix}/bin/meridian; example: {prefix}/bin/meridian combine")
    if options.tar is not None:
        options.tar.write_bytes(tar_gz(files, f"meridian-{options.version}"))
    if options.deb is not None:
        options.deb.write_bytes(deb(files, options.version, options.machine))


if __name__ == "__main__":
    main()
