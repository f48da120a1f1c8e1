"""Text files as constants of C++."""

def embedded_text(name, src, constant):
    """Makes a header NAME.h with the text of a file.

    Args:
      name: the header, without its suffix.
      src: the text file. It must not contain )text".
      constant: the name of the absl::string_view in namespace meridian.
    """
    native.genrule(
        name = name,
        srcs = [src],
        outs = [name + ".h"],
        cmd = "\n".join([
            "(echo '#pragma once'",
            "echo '#include \"absl/strings/string_view.h\"'",
            "echo 'namespace meridian {'",
            "echo -n 'inline constexpr absl::string_view %s = R\"text('" % constant,
            "cat $<",
            "echo ')text\";'",
            "echo '}  // namespace meridian') > $@",
        ]),
    )
