"""Same load path as rules_cc >= 0.1."""

load("//cc/private:native.bzl", "NativeCcInfo")

CcInfo = NativeCcInfo
