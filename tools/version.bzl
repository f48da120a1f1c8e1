"""The version of everything; CHANGELOG.md says what it brought."""

VERSION = "0.9.0"
