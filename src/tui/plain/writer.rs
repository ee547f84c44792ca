//! Output of line mode, which consists of complete lines without terminal control sequences.

use std::io::{self, Write};

/// Symbols that the terminal may not support, each with its ASCII replacement.
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

pub(crate) struct LineWriter<W> {
    out: W,
    /// Whether text written by aye must consist of ASCII characters.
    ascii: bool,
    /// Whether the terminal echoes the user's input after the input prompt.
    echoes: bool,
    /// Input prompt that is waiting for a line, if any.
    asked: Option<String>,
    /// Number of lines written so far.
    lines: u64,
}

impl<W: Write> LineWriter<W> {
    pub(crate) fn new(out: W, ascii: bool, echoes: bool) -> Self {
        Self { out, ascii, echoes, asked: None, lines: 0 }
    }

    /// Writes text that comes from aye, in a form suitable for screen readers.
    pub(crate) fn write_text(&mut self, words: &str) -> io::Result<()> {
        let words = speakable(words);
        let words = if self.ascii { to_ascii(&words) } else { words };
        self.write(&words)
    }

    /// Writes text from any source unchanged, except that control characters are removed.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.asked.take().is_some() && self.echoes {
            self.out.write_all(b"\n")?;
        }
        for line in text.split('\n') {
            self.out.write_all(strip_controls(line).as_bytes())?;
            self.out.write_all(b"\n")?;
            self.lines += 1;
        }
        Ok(())
    }

    /// Shows an input prompt if it is not already shown. Any later output cancels the prompt.
    pub(crate) fn ask(&mut self, words: &str) -> io::Result<()> {
        if self.asked.as_deref() == Some(words) {
            return Ok(());
        }
        if self.asked.take().is_some() && self.echoes {
            self.out.write_all(b"\n")?;
        }
        let shown = if self.ascii { to_ascii(words) } else { words.to_owned() };
        self.out.write_all(strip_controls(&shown).as_bytes())?;
        self.out.write_all(if self.echoes { b" " } else { b"\n" })?;
        self.asked = Some(words.to_owned());
        self.out.flush()
    }

    /// Records that the user has typed a line after the input prompt. Returns the prompt, if one was shown.
    pub(crate) fn end_prompt(&mut self) -> Option<String> {
        self.asked.take()
    }

    /// Returns whether the lines that the user types appear in the output.
    pub(crate) fn echoes(&self) -> bool {
        self.echoes
    }

    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the line of the input prompt, if one is shown, and flushes the output.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.asked.take().is_some() && self.echoes {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
impl LineWriter<Vec<u8>> {
    pub(crate) fn output(&self) -> &[u8] {
        &self.out
    }
}

/// Replaces separator dots with commas, at which screen readers pause.
fn speakable(words: &str) -> String {
    words.replace(" · ", ", ")
}

fn to_ascii(words: &str) -> String {
    ASCII.iter().fold(words.to_owned(), |words, (sign, plain)| words.replace(sign, plain))
}

/// Removes all control characters other than tabs, as a last safeguard.
fn strip_controls(line: &str) -> String {
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
    fn output_during_a_prompt_starts_on_a_new_line() {
        let text = written(true, false, |paper| {
            paper.ask("You:").unwrap();
            paper.ask("You:").unwrap();
            paper.write_text("Note: done · now").unwrap();
            paper.ask("You:").unwrap();
            paper.end_prompt();
            paper.write("a\nb").unwrap();
        });
        assert_eq!(text, "You: \nNote: done, now\nYou: a\nb\n");
    }

    #[test]
    fn on_a_pipe_prompts_end_with_a_newline() {
        let text = written(false, false, |paper| {
            paper.ask("You:").unwrap();
            paper.write_text("Note: done").unwrap();
        });
        assert_eq!(text, "You:\nNote: done\n");
    }

    #[test]
    fn control_characters_are_removed_and_ascii_output_is_supported() {
        let text = written(true, true, |paper| {
            paper.write("a\u{1b}[2Jb\r\u{7}\u{9b}1mc\td").unwrap();
            paper.write_text("+6 −5 · “x” …").unwrap();
        });
        assert_eq!(text, "a[2Jb1mc\td\n+6 -5, \"x\" ...\n");
    }
}
