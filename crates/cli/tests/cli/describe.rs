//! `thalweg describe`: the WIT of a library.

use std::fs;

use crate::library::{fake, path, root, run};

/// The libraries, and the WIT that each was built from.
const LIBRARIES: &[(&str, &str)] = &[
    ("conformance", "conformance/wit"),
    ("echo", "examples/echo/wit"),
    ("feed", "examples/feed/wit"),
    ("hello", "examples/hello/wit"),
    ("recipes", "examples/recipes/wit"),
    ("search", "examples/search/wit"),
];

#[test]
fn description_of_a_library_is_wit_that_is_compatible_with_its_own() {
    for (name, wit) in LIBRARIES {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("wit");
        let out = out.to_str().unwrap();
        let library = path(name);
        let library = library.to_str().unwrap();
        let (status, printed, errors) = run(["describe", library, "--out", out]);
        assert_eq!((status, errors.as_str()), (0, ""), "{name}");
        let expected = format!("wrote {out}/{name}.wit\nwrote {out}/{name}.thalweg.toml\n");
        assert_eq!(printed, expected);
        let (_, printed, _) = run(["describe", library]);
        assert_eq!(
            printed,
            fs::read_to_string(format!("{out}/{name}.wit")).unwrap()
        );

        let (status, _, errors) = run(["gen", out]);
        assert_eq!(status, 0, "{name}: {errors}");
        // The check compares the layouts in both directions.
        let wit = root().join(wit);
        for pair in [[out, wit.to_str().unwrap()], [wit.to_str().unwrap(), out]] {
            let (status, printed, errors) = run(["compatible", pair[0], pair[1]]);
            assert_eq!((status, errors.as_str()), (0, ""), "{name}");
            assert!(printed.contains("no additional functions"), "{printed}");
        }
    }
}

#[test]
fn policy_file_has_the_options_that_a_library_contains() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let library = path("conformance");
    let (status, _, errors) = run(["describe", library.to_str().unwrap(), "--out", out]);
    assert_eq!(status, 0, "{errors}");
    let policy = fs::read_to_string(format!("{out}/conformance.thalweg.toml")).unwrap();
    for lines in [
        "[conformance]\noverflow = \"block\"\n",
        "[conformance.lease]\nconstructor = \"async\"\ndestructor = \"async\"\n",
        "[conformance.twice]\ninline = true\nformat = \"cbor\"\n",
        "[conformance.panic-later]\nidempotent = true\n",
        "[conformance.several]\nformat = \"cbor\"\n",
        "[conformance.never]\nnotice_interval = \"1s\"",
    ] {
        assert!(policy.contains(lines), "{policy}");
    }
}

#[test]
fn file_that_is_no_usable_library_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    fs::write(&text, "not a library").unwrap();
    let describe = |path: &std::path::Path| {
        let (status, printed, errors) = run(["describe", path.to_str().unwrap()]);
        assert_eq!((status, printed.as_str()), (2, ""));
        errors
    };
    assert!(describe(&text).starts_with("cannot load "));
    assert!(describe(&folder.path().join("missing.so")).contains("No such file"));
    for (definitions, expected) in [
        (
            &["-DFAKE_NO_SYMBOL"][..],
            "does not export the function tw_library",
        ),
        (
            &["-DFAKE_NO_TABLE"],
            "does not export the function tw_library",
        ),
        (&["-DFAKE_ABI=7"], "thalweg:search has ABI 7"),
        (&["-DFAKE_SIZE=64"], "with a table of 64 bytes"),
        // Its one method has no description.
        (&[], "the interface has no form in WIT"),
    ] {
        let error = describe(&fake(folder.path(), definitions));
        assert!(error.contains(expected), "{definitions:?}: {error}");
    }
}
