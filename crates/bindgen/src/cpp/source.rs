//! Writes the text of a header: lines and documentation comments.

/// The longest line, in bytes.
const WIDTH: usize = 100;

/// The text so far.
#[derive(Default)]
pub(super) struct Source(String);

impl Source {
    /// The whole text, with exactly one newline at the end.
    pub(super) fn finish(self) -> String {
        format!("{}\n", self.0.trim_end())
    }

    /// Writes a line. A line that is too long is broken after commas.
    pub(super) fn line(&mut self, line: &str) {
        let indent = " ".repeat(line.len() - line.trim_start().len() + 4);
        let mut rest = line.to_owned();
        while rest.len() > WIDTH && !rest.starts_with('#') {
            let Some(at) = rest[..WIDTH].rfind(", ").filter(|at| *at > indent.len()) else {
                break;
            };
            self.0.push_str(&rest[..=at]);
            self.0.push('\n');
            rest = format!("{indent}{}", &rest[at + 2..]);
        }
        self.0.push_str(&rest);
        self.0.push('\n');
    }

    /// Writes lines.
    pub(super) fn lines(&mut self, lines: &str) {
        lines.lines().for_each(|line| self.line(line));
    }

    pub(super) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Writes a documentation comment, or nothing if `docs` is empty. Wraps long lines.
    pub(super) fn docs(&mut self, indent: &str, docs: &str) {
        let width = WIDTH - indent.len() - "/// ".len();
        for line in docs.trim_end().lines() {
            // A backslash at the end of a line would continue the comment.
            let line = line
                .trim_end()
                .trim_end_matches('\\')
                .replace("??/", "? ?/");
            for part in wrap(&line, width) {
                self.0.push_str(format!("{indent}/// {part}").trim_end());
                self.0.push('\n');
            }
        }
    }

    /// Opens the package's namespace. `close` closes it.
    pub(super) fn open(&mut self, namespace: &str) {
        self.line(&format!("namespace {namespace} {{"));
        self.line("inline namespace THALWEG_VIEW_MODE {");
        self.blank();
    }

    pub(super) fn close(&mut self, namespace: &str) {
        self.line("} // namespace THALWEG_VIEW_MODE");
        self.line(&format!("}} // namespace {namespace}"));
        self.blank();
    }
}

/// Breaks a line at spaces.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line;
    while rest.len() > width {
        let limit = rest.floor_char_boundary(width + 1);
        let Some(at) = rest[..limit].rfind(' ').filter(|at| *at > 0) else {
            break;
        };
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at + 1..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_with_a_backslash_at_the_end_do_not_continue_their_comment() {
        let mut source = Source::default();
        source.docs("  ", "a \\\n\nb");
        assert_eq!(source.finish(), "  /// a\n  ///\n  /// b\n");
    }

    #[test]
    fn long_line_is_broken_after_commas() {
        let mut source = Source::default();
        source.line(&format!(
            "  f({});",
            ["std::uint32_t parameter"; 8].join(", ")
        ));
        let text = source.finish();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().count() > 1, "{text}");
    }
}
