"""Text files as constants of C++, with the hash that a content security policy names a script by."""

def embedded_text(name, srcs, constant):
    """Makes a header NAME.h with the text of files, one after the other, and its hash.

    Args:
      name: the header, without its suffix.
      srcs: the files. They must not contain )text".
      constant: the name of the absl::string_view in namespace meridian; the hash, as a policy has it
        ("'sha256-...'"), is called <constant>Hash.
    """
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".h"],
        cmd = "\n".join([
            "joined=$$(mktemp)",
            "cat $(SRCS) > $$joined",
            # Hexadecimal digits to bytes to base64.
            "digits=$$(sha256sum $$joined | cut -c1-64 | sed 's/../\\\\x&/g')",
            "hash=$$(printf \"$$digits\" | base64)",
            "(echo '#pragma once'",
            "echo '#include \"absl/strings/string_view.h\"'",
            "echo 'namespace meridian {'",
            "echo \"inline constexpr absl::string_view %sHash = \\\"'sha256-$$hash'\\\";\"" % constant,
            "echo -n 'inline constexpr absl::string_view %s = R\"text('" % constant,
            "cat $$joined",
            "echo ')text\";'",
            "echo '}  // namespace meridian') > $@",
            "rm $$joined",
        ]),
    )
