//! Writes the text of a generated file: lines, comments and templates.

/// How the files of a language are written.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The longest line, in bytes.
    pub width: usize,
    /// The indentation of one level.
    pub indent: &'static str,
    /// The comments.
    pub comment: Comment,
}

/// How comments are written. A comment of several lines is `first A`, `next B`, `next C last`.
#[derive(Clone, Copy, Debug)]
pub struct Comment {
    /// Before the first line.
    pub first: &'static str,
    /// Before the other lines.
    pub next: &'static str,
    /// After the last line.
    pub last: &'static str,
    /// A line of its own before the lines of a comment of several lines, which then all begin with
    /// `next`, and end with `last` on a line of its own: `/**` in JavaScript.
    pub block: Option<&'static str>,
    /// Texts that must not be in a comment, and their replacements.
    pub replaced: &'static [(&'static str, &'static str)],
}

/// An expression or a part of a statement, which can span lines: one element per line, and a comma
/// after each.
#[derive(Clone, Debug)]
pub enum Doc {
    /// A text that never spans lines.
    Text(String),
    /// `open a, b close`.
    Group {
        /// Before the elements. Spaces at its end are written only if it is on one line.
        open: String,
        /// The elements.
        items: Vec<Doc>,
        /// After the elements. Spaces and commas at its beginning are written only on one line.
        close: &'static str,
    },
}

impl From<&str> for Doc {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Doc {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Doc {
    /// `open items close`.
    pub fn group(open: &str, items: impl IntoIterator<Item = Doc>, close: &'static str) -> Self {
        Self::Group {
            open: open.to_owned(),
            items: items.into_iter().collect(),
            close,
        }
    }

    /// `head(items)`.
    pub fn call(head: &str, items: impl IntoIterator<Item = Doc>) -> Self {
        Self::group(&format!("{head}("), items, ")")
    }

    /// With `text` in front of it.
    ///
    /// ```
    /// use thalweg_bindgen::plan::source::Doc;
    ///
    /// let call = Doc::call("f", vec!["a".into(), "b".into()]);
    /// assert_eq!(call.after("x: ").flat(), "x: f(a, b)");
    /// ```
    pub fn after(self, text: &str) -> Self {
        match self {
            Self::Text(rest) => Self::Text(format!("{text}{rest}")),
            Self::Group { open, items, close } => Self::Group {
                open: format!("{text}{open}"),
                items,
                close,
            },
        }
    }

    /// On one line.
    pub fn flat(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Group { open, items, close } if items.is_empty() => {
                format!("{}{}", open.trim_end(), close.trim_start())
            }
            Self::Group { open, items, close } => {
                let items: Vec<_> = items.iter().map(Self::flat).collect();
                format!("{open}{}{close}", items.join(", "))
            }
        }
    }

    /// The text, for a line with `before` columns in front of it and `after` columns behind it.
    /// Further lines belong to a statement at `level`.
    pub fn render(&self, format: &Format, level: usize, before: usize, after: usize) -> String {
        let flat = self.flat();
        let Self::Group { open, items, close } = self else {
            return flat;
        };
        if before + flat.chars().count() + after <= format.width {
            return flat;
        }
        let indent = format.indent.repeat(level + 1);
        let mut text = format!("{}\n", open.trim_end());
        for item in items {
            let item = item.render(format, level + 1, indent.len(), 1);
            text.push_str(&format!("{indent}{item},\n"));
        }
        text.push_str(&format.indent.repeat(level));
        text.push_str(close.trim_start_matches([' ', ',']));
        text
    }
}

/// The text so far.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    format: &'static Format,
    level: usize,
}

impl Source {
    /// An empty file.
    pub fn new(format: &'static Format) -> Self {
        Source {
            text: String::new(),
            format,
            level: 0,
        }
    }

    /// The whole text, with exactly one newline at the end.
    pub fn finish(self) -> String {
        let mut text = self.text.trim_end().to_owned();
        text.push('\n');
        text
    }

    /// Writes a line at the current level. It is broken after commas if it is too long.
    pub fn line(&mut self, line: &str) {
        let line = format!("{}{line}", self.format.indent.repeat(self.level));
        let width = self.format.width;
        let is_whole = line.trim_start().starts_with(['/', '*', '#']);
        let mut rest = line;
        while rest.len() > width && !is_whole {
            let Some(at) = rest[..rest.floor_char_boundary(width)].rfind(", ") else {
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

    /// Writes a line at `level`, which is not broken.
    pub fn line_at(&mut self, level: usize, line: &str) {
        self.text.push_str(&self.format.indent.repeat(level));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a statement at `level`: an expression between two texts.
    pub fn statement(&mut self, level: usize, before: &str, doc: &Doc, after: &str) {
        let columns = level * self.format.indent.len() + before.chars().count();
        let text = doc.render(self.format, level, columns, after.chars().count());
        self.line_at(level, &format!("{before}{text}{after}"));
    }

    /// Writes a line that begins a block. The following lines are one level deeper.
    pub fn open(&mut self, line: &str) {
        self.line(line);
        self.level += 1;
    }

    /// Writes a line that ends a block.
    pub fn close(&mut self, line: &str) {
        self.level -= 1;
        self.line(line);
    }

    /// Ends a block that has no line at its end.
    pub fn dedent(&mut self) {
        self.level -= 1;
    }

    /// Writes a line that ends a block and begins another, such as `} else {`.
    pub fn reopen(&mut self, line: &str) {
        self.close(line);
        self.level += 1;
    }

    /// Writes an empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Writes lines in which each `@key@` is replaced with its value, and a blank line.
    pub fn template(&mut self, template: &str, values: &[(&str, &str)]) {
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

    /// Writes a comment, or nothing if `docs` is empty. Long lines are wrapped. `indent` follows the
    /// indentation of the current level.
    pub fn docs(&mut self, indent: &str, docs: &str) {
        let Comment {
            first,
            next,
            last,
            block,
            replaced,
        } = self.format.comment;
        let indent = format!("{}{indent}", self.format.indent.repeat(self.level));
        let mut docs = docs.trim_end().to_owned();
        for (text, replacement) in replaced {
            docs = docs.replace(text, replacement);
        }
        let mark = next.len().max(first.len());
        let width = self.format.width - indent.len() - mark - last.len();
        let lines = docs.lines();
        let lines: Vec<_> = lines
            .flat_map(|line| wrap(line.trim_end(), width))
            .collect();
        if let Some(block) = block.filter(|_| lines.len() > 1) {
            self.text.push_str(&format!("{indent}{block}\n"));
            for line in lines {
                let line = format!("{indent}{next}{line}");
                self.text.push_str(&format!("{}\n", line.trim_end()));
            }
            return self.text.push_str(&format!("{indent}{last}\n"));
        }
        for (place, line) in lines.iter().enumerate() {
            let mark = if place == 0 { first } else { next };
            let end = if place + 1 == lines.len() { last } else { "" };
            let line = format!("{indent}{}", format!("{mark}{line}").trim_end());
            self.text.push_str(&format!("{line}{end}\n"));
        }
    }

    /// Writes the heading of a part, and a blank line.
    pub fn banner(&mut self, title: &str) {
        let Comment { first, last, .. } = self.format.comment;
        let start = format!("{first}---- {title} ");
        let dashes = self.format.width.saturating_sub(start.len() + last.len());
        let dashes = "-".repeat(dashes);
        self.text.push_str(&format!("{start}{dashes}{last}\n\n"));
    }

    /// The length of the text in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text from `start` on, for [`append`](Source::append).
    pub fn tail(self, start: usize) -> String {
        self.text[start..].to_owned()
    }

    /// Appends lines as they are.
    pub fn append(&mut self, text: &str) {
        self.text.push_str(text);
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

/// Whether `text` uses the identifier `name`, other than in documentation as `` `name` ``.
pub fn mentions(text: &str, name: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(|letter| part(letter) || letter == '`') && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 100;
    static C: Format = Format {
        width: WIDTH,
        indent: "  ",
        comment: Comment {
            first: "/* ",
            next: " * ",
            last: " */",
            block: None,
            replaced: &[("*/", "* /"), ("/*", "/ *")],
        },
    };

    #[test]
    fn docs_do_not_end_their_comment() {
        let mut source = Source::new(&C);
        source.docs("  ", "see src/*.rs */ int x;\n\nand more");
        assert_eq!(
            source.finish(),
            "  /* see src/ *.rs * / int x;\n   *\n   * and more */\n".to_owned()
        );
    }

    #[test]
    fn long_docs_are_wrapped_with_their_indentation() {
        let mut source = Source::new(&C);
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
        let mut source = Source::new(&C);
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
        let mut source = Source::new(&C);
        source.template("a @x@;", &[("x", "1")]);
        assert_eq!(source.finish(), "a 1;\n");
    }

    #[test]
    fn lines_of_a_block_are_one_level_deeper() {
        let mut source = Source::new(&C);
        source.open("if (a) {");
        source.docs("", "why");
        source.line("b();");
        source.reopen("} else {");
        source.line("c();");
        source.close("}");
        let expected = "if (a) {\n  /* why */\n  b();\n} else {\n  c();\n}\n";
        assert_eq!(source.finish(), expected);
    }
}
