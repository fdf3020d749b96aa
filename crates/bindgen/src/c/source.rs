//! The text of a header under construction: lines, comments, templates.

/// Longest line that is not broken.
const WIDTH: usize = 100;

/// Lines of C.
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

    /// One line; broken after commas where it is too long.
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
            // What follows is aligned to the parenthesis that it stands in, as clang-format does.
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

    /// Lines in which each `@key@` stands for its value, and a blank line after them.
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

    /// A comment, at this indentation; nothing where there are no docs.
    pub(super) fn docs(&mut self, indent: &str, docs: &str) {
        let docs = harmless(docs.trim_end());
        let mut lines = docs.lines().map(str::trim_end);
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

    /// The heading of a part.
    pub(super) fn banner(&mut self, title: &str) {
        let dashes = "-".repeat(WIDTH.saturating_sub(title.len() + 12));
        self.text
            .push_str(&format!("/* ---- {title} {dashes} */\n\n"));
    }
}

/// Place of the innermost parenthesis that is open at the end. A line that goes on from another has
/// lost its own, and goes on where it begins.
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

/// Docs as the inside of a comment: nothing in them ends it, and no compiler warns of it.
fn harmless(docs: &str) -> String {
    docs.replace("*/", "* /")
        .replace("/*", "/ *")
        .replace("??/", "? ?/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_cannot_end_their_comment() {
        let mut source = Source::new();
        source.docs("  ", "see src/*.rs */ int x;\n\nand more");
        assert_eq!(
            source.finish(),
            "  /* see src/ *.rs * / int x;\n   *\n   * and more */\n".to_owned()
        );
    }

    #[test]
    fn a_long_signature_breaks_after_commas_and_aligns() {
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
    fn a_template_fills_in_its_keys() {
        let mut source = Source::new();
        source.template("a @x@;", &[("x", "1")]);
        assert_eq!(source.finish(), "a 1;\n");
    }
}
