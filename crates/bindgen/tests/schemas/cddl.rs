//! As much of CDDL as the emitter writes, and of CBOR as the golden files have.

use std::collections::BTreeMap;
use thalweg_bindgen::{cddl, model::Package};

enum Item {
    Int(i128),
    Bytes(usize),
    Text(String),
    List(Vec<Item>),
    Map(Vec<(Item, Item)>),
    Tag(u64, Box<Item>),
    Simple(u64),
    /// Its width in bytes.
    Float(u32),
}

/// One item from the front; `None` where it is cut or of a kind that is not written.
fn item(bytes: &mut &[u8]) -> Option<Item> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    let (major, info) = (first >> 5, first & 31);
    let width = match info {
        0..=23 => 0,
        24..=27 => 1_usize << (info - 24),
        _ => return None,
    };
    let (head, rest) = bytes.split_at_checked(width)?;
    *bytes = rest;
    let value = match width {
        0 => u64::from(info),
        _ => head
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    Some(match major {
        0 => Item::Int(value.into()),
        1 => Item::Int(-1 - i128::from(value)),
        2 | 3 => {
            let (text, rest) = bytes.split_at_checked(value as usize)?;
            *bytes = rest;
            match major {
                2 => Item::Bytes(text.len()),
                _ => Item::Text(String::from_utf8(text.to_owned()).ok()?),
            }
        }
        4 => Item::List((0..value).map(|_| item(bytes)).collect::<Option<_>>()?),
        5 => Item::Map(
            (0..value)
                .map(|_| item(bytes).zip(item(bytes)))
                .collect::<Option<_>>()?,
        ),
        6 => Item::Tag(value, Box::new(item(bytes)?)),
        _ if width >= 2 => Item::Float(width as u32),
        _ => Item::Simple(value),
    })
}

enum Rule {
    Choice(Vec<Rule>),
    Name(String),
    Literal(String),
    Range(i128, i128),
    /// Bytes of a text or a byte string.
    Size(Box<Rule>, i128, i128),
    Tagged(u64, Box<Rule>),
    /// How often at least and at most, and what.
    List(Vec<(i128, i128, Rule)>),
    Map(Vec<(String, Rule)>),
}

struct Parser<'a>(&'a str);

impl Parser<'_> {
    fn take(&mut self, text: &str) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn want(&mut self, text: &str) {
        assert!(self.take(text), "{text:?} before {:.60?}", self.0);
    }

    fn while_of(&mut self, is_part: impl Fn(char) -> bool) -> String {
        self.0 = self.0.trim_start();
        let end = self.0.find(|letter| !is_part(letter));
        let (word, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        word.to_owned()
    }

    fn name(&mut self) -> String {
        self.while_of(|c| c.is_ascii_alphanumeric() || "-.@_".contains(c))
    }

    fn number(&mut self) -> i128 {
        let is_negative = self.take("-");
        let digits = self.while_of(|c| c.is_ascii_digit());
        let number: i128 = digits.parse().expect("a number");
        if is_negative { -number } else { number }
    }

    fn literal(&mut self) -> String {
        self.want("\"");
        let text = self.while_of(|c| c != '"');
        self.want("\"");
        text
    }

    fn choice(&mut self) -> Rule {
        let mut choices = vec![self.one()];
        while self.take("/") {
            choices.push(self.one());
        }
        Rule::Choice(choices)
    }

    fn one(&mut self) -> Rule {
        self.0 = self.0.trim_start();
        let rule = if self.take("(") {
            let rule = self.choice();
            self.want(")");
            rule
        } else if self.take("#6.") {
            let tag = self.number() as u64;
            self.want("(");
            let inner = self.choice();
            self.want(")");
            Rule::Tagged(tag, Box::new(inner))
        } else if self.take("[") {
            Rule::List(self.entries("]", Self::entry))
        } else if self.take("{") {
            Rule::Map(self.entries("}", |this| {
                let key = this.literal();
                this.want(":");
                (key, this.choice())
            }))
        } else if self.0.starts_with('"') {
            Rule::Literal(self.literal())
        } else if self.0.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            let least = self.number();
            self.want("..");
            Rule::Range(least, self.number())
        } else {
            let name = self.name();
            assert!(!name.is_empty(), "a type before {:.60?}", self.0);
            Rule::Name(name)
        };
        if !self.take(".size") {
            return rule;
        }
        if !self.take("(") {
            let size = self.number();
            return Rule::Size(Box::new(rule), size, size);
        }
        let least = self.number();
        self.want("..");
        let most = self.number();
        self.want(")");
        Rule::Size(Box::new(rule), least, most)
    }

    fn entries<T>(&mut self, close: &str, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut entries = Vec::new();
        while !self.take(close) {
            entries.push(one(self));
            if !self.take(",") {
                self.want(close);
                break;
            }
        }
        entries
    }

    fn entry(&mut self) -> (i128, i128, Rule) {
        let digits = self
            .0
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        let (least, most) = if self.take("?") {
            (0, 1)
        } else if self.take("*") {
            (0, i128::MAX)
        } else if digits.starts_with('*') {
            let least = self.number();
            self.want("*");
            (least, self.number())
        } else {
            (1, 1)
        };
        (least, most, self.choice())
    }
}

pub struct Rules(BTreeMap<String, Rule>);

impl Rules {
    pub fn of(package: &Package) -> Self {
        let outputs = cddl::emit(package).expect("it has a form");
        let lines = outputs[0].contents.lines();
        let text: Vec<&str> = lines
            .filter(|line| !line.trim_start().starts_with(';'))
            .collect();
        let text = text.join("\n");
        let mut parser = Parser(&text);
        let mut rules = BTreeMap::new();
        while !parser.0.trim_start().is_empty() {
            let name = parser.name();
            parser.want("=");
            let rule = parser.choice();
            assert!(rules.insert(name.clone(), rule).is_none(), "{name} twice");
        }
        Rules(rules)
    }

    /// Whether the bytes are one item under the rule, and nothing behind it.
    pub fn check(&self, name: &str, mut bytes: &[u8]) -> bool {
        let rule = self.0.get(name).unwrap_or_else(|| panic!("no rule {name}"));
        let item = item(&mut bytes);
        bytes.is_empty() && item.is_some_and(|item| self.matches(rule, &item))
    }

    pub fn check_names(&self) {
        for rule in self.0.values() {
            self.names(rule);
        }
    }

    fn names(&self, rule: &Rule) {
        match rule {
            Rule::Choice(rules) => rules.iter().for_each(|rule| self.names(rule)),
            Rule::Name(name) => {
                let _ = self.named(name, &Item::Simple(0));
            }
            Rule::Literal(_) | Rule::Range(..) => {}
            Rule::Size(rule, ..) | Rule::Tagged(_, rule) => self.names(rule),
            Rule::List(entries) => entries.iter().for_each(|(_, _, rule)| self.names(rule)),
            Rule::Map(entries) => entries.iter().for_each(|(_, rule)| self.names(rule)),
        }
    }

    fn named(&self, name: &str, item: &Item) -> bool {
        match name {
            "bool" => matches!(item, Item::Simple(20 | 21)),
            "null" => matches!(item, Item::Simple(22)),
            "uint" => matches!(item, Item::Int(0..)),
            "text" => matches!(item, Item::Text(_)),
            "bytes" => matches!(item, Item::Bytes(_)),
            "float" => matches!(item, Item::Float(_)),
            "float16-32" => matches!(item, Item::Float(2 | 4)),
            name => {
                let rule = self.0.get(name).unwrap_or_else(|| panic!("no rule {name}"));
                self.matches(rule, item)
            }
        }
    }

    fn matches(&self, rule: &Rule, item: &Item) -> bool {
        match (rule, item) {
            (Rule::Choice(rules), _) => rules.iter().any(|rule| self.matches(rule, item)),
            (Rule::Name(name), _) => self.named(name, item),
            (Rule::Literal(text), Item::Text(found)) => text == found,
            (Rule::Range(least, most), Item::Int(value)) => (least..=most).contains(&value),
            (Rule::Size(rule, least, most), Item::Text(_) | Item::Bytes(_)) => {
                let size = match item {
                    Item::Text(text) => text.len(),
                    Item::Bytes(size) => *size,
                    _ => 0,
                };
                (*least..=*most).contains(&(size as i128)) && self.matches(rule, item)
            }
            (Rule::Tagged(tag, rule), Item::Tag(found, inner)) => {
                tag == found && self.matches(rule, inner)
            }
            (Rule::List(entries), Item::List(items)) => self.in_order(entries, items),
            (Rule::Map(entries), Item::Map(pairs)) => {
                let member = |(name, rule): &(String, Rule)| {
                    pairs.iter().any(|(key, value)| {
                        matches!(key, Item::Text(key) if key == name) && self.matches(rule, value)
                    })
                };
                entries.len() == pairs.len() && entries.iter().all(member)
            }
            _ => false,
        }
    }

    /// Each entry takes as many as it can: none that is written begins as the one before it.
    fn in_order(&self, entries: &[(i128, i128, Rule)], items: &[Item]) -> bool {
        let mut rest = items;
        for (least, most, rule) in entries {
            let mut count = 0;
            while let Some((item, behind)) = rest.split_first()
                && count < *most
                && self.matches(rule, item)
            {
                rest = behind;
                count += 1;
            }
            if count < *least {
                return false;
            }
        }
        rest.is_empty()
    }
}
