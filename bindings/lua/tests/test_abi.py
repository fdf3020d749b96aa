"""The declarations in abi.lua are those of thalweg.h."""

import re
import subprocess

import nginx


def declarations(text: str) -> dict[str, list[tuple[str, str]]]:
    """The fields of each struct: names and types. A function that the package does not use is a pointer."""
    structs = {}
    for name, body in re.findall(
        r"typedef struct (\w+) \{(.*?)\} \1;", text, re.DOTALL
    ):
        fields = []
        for field in re.sub(r"\s+", " ", body).split(";"):
            if match := re.match(r" ?(.*?)\(\*(\w+)\)(\(.*\))$", field):
                kind = match[1] + match[3].replace(
                    "tw_drop_ctx drop_ctx", "void (*drop_ctx)(void *ctx)"
                )
                fields.append((match[2], re.sub(r"\W", "", kind)))
            elif match := re.match(r" ?((?:const )?\w+) (.*)$", field):
                for part in match[2].split(","):
                    declared = part.strip()
                    fields.append(
                        (
                            re.sub(r"\W|(?<=\[)\d+", "", declared.split("[")[0]),
                            f"{match[1]} {declared}",
                        )
                    )
        structs[name] = fields
    return structs


def test_declarations_are_those_of_the_header() -> None:
    header = nginx.ROOT / "bindings/c/include/thalweg.h"
    command = ["cc", "-E", "-P", str(header)]
    preprocessed = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout
    theirs = declarations(preprocessed)
    ours = declarations((nginx.ROOT / "bindings/lua/lib/thalweg/abi.lua").read_text())
    assert {
        "tw_table",
        "tw_completion",
        "tw_submission",
        "tw_batch",
        "tw_method",
    } < ours.keys()
    for struct, fields in ours.items():
        if struct not in theirs:
            assert struct.startswith("thalweg_")
            continue
        assert [name for name, _ in fields] == [name for name, _ in theirs[struct]]
        for (name, kind), (_, their_kind) in zip(fields, theirs[struct], strict=True):
            assert kind in (their_kind, f"void *{name}"), f"{struct}.{name}"


def test_numbers_are_those_of_the_header() -> None:
    header = (nginx.ROOT / "bindings/c/include/thalweg.h").read_text()
    lua = (nginx.ROOT / "bindings/lua/lib/thalweg/abi.lua").read_text()
    numbers = re.findall(r"^  ([A-Z_]+) = (\d+),", lua, re.MULTILINE)
    assert len(numbers) > 15
    for name, number in numbers:
        names = [f"TW_{name}", f"TW_COMPLETION_{name}"]
        pattern = "|".join(rf"(#define )?{one} (= )?{number}u?\b" for one in names)
        assert re.search(pattern, header), name
