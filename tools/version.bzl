"""The version of everything; CHANGELOG.md says what it brought. MODULE.bazel has it, too."""

VERSION = "0.9.0"
