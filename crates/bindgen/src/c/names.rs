//! The styles of C names, and the scope of a header.

use crate::plan::names::{Case, Scope, Style};

/// Keywords of C and C++ up to C23 and C++20, and lower-case macros of the included headers and of
/// GNU C.
const RESERVED: &str = "\
alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char16_t
char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval
constexpr constinit continue decltype default delete do double dynamic_cast else enum errno explicit
export extern false float for friend goto i386 if inline int linux long mutable namespace new
noexcept not not_eq nullptr offsetof operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
stderr stdin stdout struct switch template this thread_local throw true try typedef typeid typename
typeof typeof_unqual union unix unsigned using va_arg va_copy va_end va_start virtual void volatile
wchar_t while xor xor_eq";

/// Parameters and variables of the generated functions.
const LOCALS: &str = "call client completion context deadline_ns error request result root";

/// A member of a struct.
pub(super) const MEMBER: Style = Style {
    case: Case::Snake,
    reserved: &[RESERVED],
};

/// A parameter of a function.
pub(super) const PARAMETER: Style = Style {
    case: Case::Snake,
    reserved: &[RESERVED, LOCALS],
};

/// `path-bytes` becomes `path_bytes`: a part of a name, which can be a reserved word.
pub(super) fn snake(name: &str) -> String {
    Case::Snake.of(name)
}

/// The identifiers of one header, which share one scope.
pub(super) struct Names {
    prefix: String,
    taken: Scope,
}

impl Names {
    /// All names begin with the name of the package.
    pub(super) fn new(package: &str) -> Self {
        let mut prefix = snake(package);
        if prefix == "tw" {
            prefix.push('_'); // `tw_` is reserved for Thalweg
        }
        Names {
            prefix,
            taken: Scope::default(),
        }
    }

    /// `search`
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Claims an identifier: `match_view` becomes `search_match_view`.
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        self.taken.claim(format!("{}_{wanted}", self.prefix))
    }

    /// Claims a constant: `error_glob` becomes `SEARCH_ERROR_GLOB`.
    pub(super) fn constant(&mut self, wanted: &str) -> String {
        let name = format!("{}_{wanted}", self.prefix);
        self.taken.claim(name.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_of_c_or_cpp_gets_an_underscore() {
        assert_eq!(MEMBER.of("template"), "template_");
        assert_eq!(MEMBER.of("Register"), "register_");
        assert_eq!(MEMBER.of("path-bytes"), "path_bytes");
    }

    #[test]
    fn parameter_named_like_a_local_variable_gets_an_underscore() {
        assert_eq!(PARAMETER.of("deadline-ns"), "deadline_ns_");
        assert_eq!(MEMBER.of("deadline-ns"), "deadline_ns");
    }

    #[test]
    fn second_claim_of_a_name_gets_an_underscore() {
        let mut names = Names::new("my-search");
        assert_eq!(names.claim("count"), "my_search_count");
        assert_eq!(names.claim("count"), "my_search_count_");
        assert_eq!(names.constant("a_b"), "MY_SEARCH_A_B");
        assert_eq!(names.constant("a_b"), "MY_SEARCH_A_B_");
    }

    #[test]
    fn package_named_tw_does_not_use_the_tw_prefix() {
        assert_eq!(Names::new("tw").claim("open"), "tw__open");
    }
}
