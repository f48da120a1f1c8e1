"""What Bazel 4.2 has built in, under names that other files may give on."""

native_cc_common = cc_common
NativeCcInfo = CcInfo
