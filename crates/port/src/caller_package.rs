//! A caller in Rust that was compiled for a version of the package, and opens a service at run time.

use crate::code::{Code, Failure};
use crate::instance::Instance;
use crate::package::{Method, Package};
use crate::versions::FunctionSchema;

impl FunctionSchema<'static> {
    fn of(method: &'static Method) -> Self {
        Self {
            name: method.name,
            hashes: [method.params, method.ok, method.error, method.element],
            description: method.description,
        }
    }
}

/// Whether two versions may be compatible: they are equal, or have the same major number, or for 0.x the
/// same minor number, which is not 0.
fn is_compatible_version(ours: &str, theirs: &str) -> bool {
    let range = |version: &str| {
        let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
        match numbers?[..] {
            [0, 0, _] => None,
            [0, minor, _] => Some((0, minor)),
            [major, _, _] => Some((major, 0)),
            _ => None,
        }
    };
    ours == theirs || range(ours).is_some_and(|ours| range(theirs) == Some(ours))
}

impl Instance {
    /// [`set_caller_schema`](Self::set_caller_schema) for a caller in Rust, which was compiled for `package`.
    ///
    /// # Errors
    /// Those of `set_caller_schema`. `version` also if the instance has
    /// another package, or a version that its number declares incompatible.
    pub(crate) fn set_caller_package(&self, package: &'static Package) -> Result<(), Failure> {
        let (ours, theirs) = (package, self.package);
        let both = format!(
            "built for {}@{}, but the service is {}@{}",
            ours.name, ours.version, theirs.name, theirs.version
        );
        if ours.name != theirs.name || !is_compatible_version(ours.version, theirs.version) {
            return Err(Code::Version.because(both));
        }
        let known = |methods: &'static [Method]| methods.iter().map(FunctionSchema::of);
        let methods: Vec<_> = known(ours.methods).collect();
        let imports: Vec<_> = known(ours.imports).collect();
        self.set_caller_schema(&methods, &imports)
            .map_err(|why| match why.code {
                Code::Version => {
                    Code::Version.because(format!("{both}; first difference: {}", why.message))
                }
                _ => why,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::is_compatible_version;

    #[test]
    fn versions_with_the_same_first_number_are_compatible() {
        for (ours, theirs) in [
            ("1.2.3", "1.4.0"),
            ("0.1.2", "0.1.3"),
            ("0.0.1", "0.0.1"),
            ("1.0.0-beta", "1.0.0-beta"),
        ] {
            assert!(is_compatible_version(ours, theirs), "{ours} {theirs}");
        }
        for (ours, theirs) in [
            ("1.2.3", "2.2.3"),
            ("0.1.2", "0.2.2"),
            ("0.1.2", "1.1.2"),
            ("0.0.1", "0.0.2"),
            ("1.0.0-beta", "1.0.0"),
            ("1.0", "1.0.0"),
            ("", "0.1.0"),
        ] {
            assert!(!is_compatible_version(ours, theirs), "{ours} {theirs}");
        }
    }
}
