#!/bin/sh
# What `meridian --version` says of the sources that it was built from: Bazel runs this before each
# build. An archive without its history says nothing, also inside of somebody else's repository.
commit=
if [ "$(git rev-parse --show-toplevel 2> /dev/null)" = "$(pwd -P)" ]; then
  commit=$(git rev-parse --short=12 HEAD 2> /dev/null)
  if [ -n "$(git --no-optional-locks status --porcelain --untracked-files=no 2> /dev/null)" ]; then
    commit="$commit, changed"
  fi
fi
echo "STABLE_MERIDIAN_COMMIT $commit"
