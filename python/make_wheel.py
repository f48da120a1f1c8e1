# SPDX-License-Identifier: Apache-2.0
"""Packs the package and the program into a wheel; the same inputs make the same bytes.

  python3 make_wheel.py --program=PATH --output=meridian-1.2.3-py3-none-linux_x86_64.whl FILE...

The program inside makes it one for a platform; it serves every Python 3 there.

Each FILE is put below share/meridian/ of the package under the path that it is given by: the
licences, and the example that combine shows without flags.
"""
import argparse
import base64
import hashlib
import pathlib
import stat
import zipfile

METADATA = """Metadata-Version: 2.1
Name: meridian
Version: {version}
Summary: Profiles of distributed JAX and PyTorch jobs on one clock
License: Apache-2.0
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.8
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Provides-Extra: pandas
Requires-Dist: pandas; extra == 'pandas'
Provides-Extra: notebook
Requires-Dist: ipython; extra == 'notebook'
Requires-Dist: matplotlib; extra == 'notebook'
Requires-Dist: networkx; extra == 'notebook'
Requires-Dist: pandas; extra == 'notebook'
"""

WHEEL = """Wheel-Version: 1.0
Generator: meridian make_wheel
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """[console_scripts]
meridian = meridian._program:main
"""


def contents(version, tag, program, files):
    """Returns the content and the mode of every file but RECORD, by name."""
    package = pathlib.Path(__file__).parent / "meridian"
    packed = {f"meridian/{path.name}": (path.read_bytes(), 0o644)
              for path in [*package.glob("*.py"), package / "py.typed"]}
    packed.update((f"meridian/share/meridian/{path.as_posix()}", (path.read_bytes(), 0o644))
                  for path in files)
    packed["meridian/bin/meridian"] = (program.read_bytes(), 0o755)
    info = f"meridian-{version}.dist-info/"
    packed[info + "METADATA"] = (METADATA.format(version=version).encode(), 0o644)
    packed[info + "WHEEL"] = (WHEEL.format(tag=tag).encode(), 0o644)
    packed[info + "entry_points.txt"] = (ENTRY_POINTS.encode(), 0o644)
    return packed


def write_wheel(output, program, files):
    """Writes the wheel, whose name tells version and platform, as pip wants it."""
    _, version, tag = output.stem.split("-", 2)
    packed = contents(version, tag, program, files)
    record = f"meridian-{version}.dist-info/RECORD"
    lines = []
    for name, (content, _) in sorted(packed.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    packed[record] = ("".join([*lines, f"{record},,\n"]).encode(), 0o644)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(packed, key=lambda name: (name == record, name)):
            content, mode = packed[name]
            # The oldest time that a zip file can hold, so that no clock is in it.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, whose modes are in external_attr.
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    for name in ("program", "output"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path)
    write_wheel(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
