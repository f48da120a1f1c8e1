#!/bin/sh
# What `meridian --version` says of the sources that it was built from: Bazel runs this before each
# build. An archive without its history says nothing.
commit=$(git rev-parse --short=12 HEAD 2> /dev/null) || commit=
if [ -n "$commit" ] && [ -n "$(git status --porcelain --untracked-files=no 2> /dev/null)" ]; then
  commit="$commit, changed"
fi
echo "STABLE_MERIDIAN_COMMIT $commit"
