//! What a plain session is written on: whole lines, one after the other, and nothing that a terminal obeys.

use std::io::{self, Write};

/// Signs that a reader of lines stumbles over, and words or letters of ASCII for them.
const ASCII: &[(&str, &str)] = &[
    ("…", "..."),
    ("−", "-"),
    ("–", "-"),
    ("→", "->"),
    ("×", "x"),
    ("·", "-"),
    ("\u{201c}", "\""),
    ("\u{201d}", "\""),
    ("\u{2018}", "'"),
    ("\u{2019}", "'"),
];

pub struct LineWriter<W> {
    out: W,
    /// No letters but ASCII can be relied on for what aye says itself.
    ascii: bool,
    /// What is typed is seen right behind what was written last.
    echoes: bool,
    /// Words that wait for an answer on the same line.
    asked: Option<String>,
    /// How many lines there are by now.
    lines: u64,
}

impl<W: Write> LineWriter<W> {
    pub fn new(out: W, ascii: bool, echoes: bool) -> Self {
        Self { out, ascii, echoes, asked: None, lines: 0 }
    }

    /// What aye says itself, in sentences.
    pub fn say(&mut self, words: &str) -> io::Result<()> {
        let words = spoken(words);
        let words = if self.ascii { in_ascii(&words) } else { words };
        self.write(&words)
    }

    /// What others wrote, as they wrote it.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        if self.asked.take().is_some() && self.echoes {
            self.out.write_all(b"\n")?;
        }
        for line in text.split('\n') {
            self.out.write_all(harmless(line).as_bytes())?;
            self.out.write_all(b"\n")?;
            self.lines += 1;
        }
        Ok(())
    }

    /// Asks for a line, once; what is written meanwhile takes the question away.
    pub fn ask(&mut self, words: &str) -> io::Result<()> {
        if self.asked.as_deref() == Some(words) {
            return Ok(());
        }
        if self.asked.take().is_some() && self.echoes {
            self.out.write_all(b"\n")?;
        }
        let shown = if self.ascii { in_ascii(words) } else { words.to_owned() };
        self.out.write_all(harmless(&shown).as_bytes())?;
        self.out.write_all(if self.echoes { b" " } else { b"\n" })?;
        self.asked = Some(words.to_owned());
        self.out.flush()
    }

    /// The person typed a line: the terminal has ended it already.
    pub fn answered(&mut self) -> Option<String> {
        self.asked.take()
    }

    /// Whether a line of the person stands there as they typed it.
    pub fn echoes(&self) -> bool {
        self.echoes
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The last line ends where one is begun.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.asked.take().is_some() && self.echoes {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
impl LineWriter<Vec<u8>> {
    pub fn written(&self) -> &[u8] {
        &self.out
    }
}

/// Dots between facts are read out as dots; commas are pauses.
fn spoken(words: &str) -> String {
    words.replace(" · ", ", ")
}

fn in_ascii(words: &str) -> String {
    ASCII.iter().fold(words.to_owned(), |words, (sign, plain)| words.replace(sign, plain))
}

/// The last net: whatever was cleaned before, no control character but the tab gets out.
fn harmless(line: &str) -> String {
    line.chars().filter(|letter| *letter == '\t' || !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(echoes: bool, ascii: bool, act: impl FnOnce(&mut LineWriter<&mut Vec<u8>>)) -> String {
        let mut bytes = Vec::new();
        act(&mut LineWriter::new(&mut bytes, ascii, echoes));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_that_comes_while_one_is_asked_for_begins_a_line_of_its_own() {
        let text = written(true, false, |paper| {
            paper.ask("You:").unwrap();
            paper.ask("You:").unwrap();
            paper.say("Note: done · now").unwrap();
            paper.ask("You:").unwrap();
            paper.answered();
            paper.write("a\nb").unwrap();
        });
        assert_eq!(text, "You: \nNote: done, now\nYou: a\nb\n");
    }

    #[test]
    fn on_a_pipe_what_asks_is_a_line() {
        let text = written(false, false, |paper| {
            paper.ask("You:").unwrap();
            paper.say("Note: done").unwrap();
        });
        assert_eq!(text, "You:\nNote: done\n");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_out_and_ascii_is_enough() {
        let text = written(true, true, |paper| {
            paper.write("a\u{1b}[2Jb\r\u{7}\u{9b}1mc\td").unwrap();
            paper.say("+6 −5 · “x” …").unwrap();
        });
        assert_eq!(text, "a[2Jb1mc\td\n+6 -5, \"x\" ...\n");
    }
}
