"""Same load path as rules_cc >= 0.1."""

load("//cc/private:native.bzl", "native_cc_common")

cc_common = native_cc_common
