//! Redirects of a simple command, and the here-documents that follow its line.

use super::super::names::is_descriptor_name;
use super::super::word::Word;
use super::{DESCRIPTOR, DOCUMENT, Redirect, Scanner, UNPARSABLE, WordReader};

impl Scanner<'_> {
    pub(super) fn redirect(&mut self) {
        if self.current.words.is_empty() && self.current.assignments.is_empty() && self.current.redirects.is_empty() {
            self.start = self.reader.at;
        }
        self.descriptor();
        let operators = ["<<<", "<<-", "&>>", "<<", "<>", "<&", ">>", ">|", ">&", "&>", "<", ">"];
        let operator = operators.into_iter().find(|operator| self.reader.starts_with(operator)).unwrap_or(">");
        self.reader.at += operator.len();
        self.blanks();
        let target = self.reader.word();
        if operator == "<<" || operator == "<<-" {
            self.current.oddities.push(DOCUMENT);
            let quoted = target.is_quoted() || target.raw.contains('\\');
            self.pending.push((target.literal().unwrap_or_else(|| target.raw.clone()), quoted, operator == "<<-"));
            return;
        }
        if target.raw != "-" || !operator.ends_with('&') {
            self.scan.raws.push(target.raw.clone());
        }
        self.current.redirects.push(Redirect { operator: operator.to_owned(), target });
    }

    /// Handles a number directly before a redirect, which is a file descriptor rather than an argument.
    fn descriptor(&mut self) {
        let glued = self.reader.at > 0 && !self.reader.text.as_bytes()[self.reader.at - 1].is_ascii_whitespace();
        let number = |word: &Word| !word.raw.is_empty() && word.raw.bytes().all(|byte| byte.is_ascii_digit());
        if glued && self.current.words.last().is_some_and(|word| is_descriptor_name(&word.raw)) && self.reader.byte(0) != b'&' {
            self.current.words.pop();
            self.scan.raws.pop();
            self.current.oddities.push(DESCRIPTOR);
            return;
        }
        if glued && self.current.words.last().is_some_and(number) && self.reader.byte(0) != b'&' {
            self.current.words.pop();
            self.scan.raws.pop();
        }
    }

    pub(super) fn here_documents(&mut self) {
        for (delimiter, quoted, tabs) in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            let mut closed = false;
            while !self.reader.is_at_end() {
                let rest = &self.reader.text[self.reader.at..];
                let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
                self.reader.at = (self.reader.at + line.len() + 1).min(self.reader.text.len());
                let line = if tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    closed = true;
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if !closed {
                self.report_oddity(UNPARSABLE);
            }
            if !quoted {
                let mut inner = WordReader::new(&body);
                inner.double_quotes(&mut Word::default(), 0);
                self.scan.exhausted |= inner.has_given_up();
                self.scan.substitutions.append(&mut inner.substitutions);
            }
            self.scan.documents.push(body);
        }
    }
}
