//! Writes the text of a header: lines, comments and templates.

/// The longest line, in bytes.
const WIDTH: usize = 100;

/// The text so far.
pub(super) struct Source {
    text: String,
}

impl Source {
    pub(super) fn new() -> Self {
        Source {
            text: String::new(),
        }
    }

    /// The whole text, with exactly one newline at the end.
    pub(super) fn finish(self) -> String {
        let mut text = self.text.trim_end().to_owned();
        text.push('\n');
        text
    }

    /// Writes a line, which is broken after commas if it is too long.
    pub(super) fn line(&mut self, line: &str) {
        if line.len() <= WIDTH || line.starts_with('#') || line.trim_start().starts_with(['/', '*'])
        {
            self.text.push_str(line);
            self.text.push('\n');
            return;
        }
        let mut rest = line.to_owned();
        while rest.len() > WIDTH {
            let Some(at) = rest[..WIDTH].rfind(", ") else {
                break;
            };
            // The rest is aligned with the innermost open parenthesis, as clang-format does.
            let indent = open_parenthesis(&rest[..at]).map_or(4, |open| open + 1);
            if indent >= at {
                break;
            }
            self.text.push_str(&rest[..=at]);
            self.text.push('\n');
            rest = format!("{}{}", " ".repeat(indent), &rest[at + 2..]);
        }
        self.text.push_str(&rest);
        self.text.push('\n');
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Writes lines in which each `@key@` is replaced with its value, and a blank line.
    pub(super) fn template(&mut self, template: &str, values: &[(&str, &str)]) {
        for line in template.lines() {
            let mut line = line.to_owned();
            for (key, value) in values {
                line = line.replace(&format!("@{key}@"), value);
            }
            debug_assert!(!line.contains('@'), "a key without a value in {line:?}");
            match line.is_empty() {
                true => self.blank(),
                false => line.lines().for_each(|line| self.line(line)),
            }
        }
        self.blank();
    }

    /// Writes a comment, or nothing if `docs` is empty. Wraps long lines.
    pub(super) fn docs(&mut self, indent: &str, docs: &str) {
        let docs = harmless(docs.trim_end());
        let width = WIDTH - indent.len() - " * ".len() - " */".len();
        let lines: Vec<_> = docs
            .lines()
            .flat_map(|line| wrap(line.trim_end(), width))
            .collect();
        let mut lines = lines.iter().map(String::as_str);
        let Some(first) = lines.next() else { return };
        let rest: Vec<_> = lines.collect();
        if rest.is_empty() {
            self.text.push_str(&format!("{indent}/* {first} */\n"));
            return;
        }
        self.text.push_str(&format!("{indent}/* {first}\n"));
        for (index, line) in rest.iter().enumerate() {
            let end = if index + 1 == rest.len() { " */" } else { "" };
            let space = if line.is_empty() { "" } else { " " };
            self.text
                .push_str(&format!("{indent} *{space}{line}{end}\n"));
        }
    }

    /// Writes the heading of a part.
    pub(super) fn banner(&mut self, title: &str) {
        let dashes = "-".repeat(WIDTH.saturating_sub(title.len() + 12));
        self.text
            .push_str(&format!("/* ---- {title} {dashes} */\n\n"));
    }
}

/// The offset of the innermost parenthesis that is open at the end. In a continuation line the
/// parenthesis is on an earlier line, and its offset follows from the indentation.
fn open_parenthesis(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '(' => open.push(at),
            ')' => drop(open.pop()),
            _ => {}
        }
    }
    let start = text.len() - text.trim_start().len();
    open.pop()
        .or(if start > 4 { Some(start - 1) } else { None })
}

/// Breaks a line at spaces. The continuation lines have its indentation.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(line.len() - line.trim_start().len());
    let mut lines = Vec::new();
    let mut rest = line.to_owned();
    while rest.len() > width {
        let limit = rest.floor_char_boundary(width + 1);
        let Some(at) = rest[..limit].rfind(' ').filter(|at| *at > indent.len()) else {
            break;
        };
        lines.push(rest[..at].trim_end().to_owned());
        rest = format!("{indent}{}", rest[at + 1..].trim_start());
    }
    lines.push(rest);
    lines
}

/// Changes text so that it cannot end a comment, and that no compiler warns about it.
fn harmless(docs: &str) -> String {
    docs.replace("*/", "* /")
        .replace("/*", "/ *")
        .replace("??/", "? ?/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_do_not_end_their_comment() {
        let mut source = Source::new();
        source.docs("  ", "see src/*.rs */ int x;\n\nand more");
        assert_eq!(
            source.finish(),
            "  /* see src/ *.rs * / int x;\n   *\n   * and more */\n".to_owned()
        );
    }

    #[test]
    fn long_docs_are_wrapped_with_their_indentation() {
        let mut source = Source::new();
        source.docs("", &format!("first\n  {}", "word ".repeat(30)));
        let text = source.finish();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with(" *   word")),
            "{text}"
        );
    }

    #[test]
    fn long_signature_is_broken_after_commas_and_aligned() {
        let mut source = Source::new();
        let parameters = ["uint32_t parameter"; 8].join(", ");
        source.line(&format!("static inline uint32_t f({parameters}) {{"));
        let text = source.finish();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|line| line.find('u') == Some(25)),
            "{text}"
        );
    }

    #[test]
    fn template_replaces_its_keys() {
        let mut source = Source::new();
        source.template("a @x@;", &[("x", "1")]);
        assert_eq!(source.finish(), "a 1;\n");
    }
}
