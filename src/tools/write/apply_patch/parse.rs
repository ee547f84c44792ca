//! Parses patches. What models add or omit is tolerated as long as the meaning is unambiguous.

use crate::tools::document::line_breaks::only_cr;

/// The change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchSection {
    pub path: String,
    /// Line of the patch (1-based) at which the section starts.
    pub line: usize,
    pub what: FileOperation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileOperation {
    Add { content: String },
    Delete,
    Update { move_to: Option<String>, hunks: Vec<PatchHunk> },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PatchHunk {
    /// Line of the patch (1-based) at which the hunk starts.
    pub line: usize,
    /// Lines of the file above the hunk that locate it, outermost first.
    pub headers: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// Whether the hunk's last line is the last one in the file.
    pub at_end: bool,
    /// Whether the new side has a final newline, judging by `\ No newline at end of file`. `None` if the patch does not
    /// say.
    pub final_newline: Option<bool>,
}

impl PatchHunk {
    pub(crate) fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.kind != PatchLineKind::Added).map(|line| line.text.as_str())
    }

    pub(crate) fn added_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.kind == PatchLineKind::Added).map(|line| line.text.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchLine {
    pub kind: PatchLineKind,
    pub text: String,
    /// Whether this is an empty line without the leading space, which may be no more than a separator between two
    /// hunks.
    pub bare: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchLineKind {
    Context,
    Removed,
    Added,
}

/// An error in a patch, with the line at which it occurs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {message}")]
pub(crate) struct ParseError {
    pub line: usize,
    pub message: String,
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const MOVE: &str = "*** Move to:";
const HEADERS: [&str; 3] = ["*** Add File:", "*** Delete File:", "*** Update File:"];
/// Maximum number of characters of a line to quote in an error.
const MAX_SHOWN_CHARACTERS: usize = 80;

/// Parses a patch into its sections. Fails if there are none.
pub(crate) fn parse(patch: &str) -> Result<Vec<PatchSection>, ParseError> {
    let mut parser = PatchParser::new(patch);
    parser.skip_to_begin()?;
    let mut sections = Vec::new();
    while let Some(section) = parser.section()? {
        sections.push(section);
    }
    if sections.is_empty() {
        return Err(
            parser.error_here("the patch has no `*** Add File:`, `*** Update File:` or `*** Delete File:`; add at least one")
        );
    }
    Ok(sections)
}

struct PatchParser<'a> {
    lines: Vec<&'a str>,
    at: usize,
    /// Whether all lines of the patch end with CRLF, in which case the CRs are ignored.
    crlf: bool,
    /// Whether the last line is complete, which shows that no text is missing.
    ended: bool,
    /// Line that precedes the patch, which may open a code fence or a heredoc.
    opener: &'a str,
}

impl<'a> PatchParser<'a> {
    fn new(patch: &'a str) -> Self {
        let patch = patch.strip_prefix('\u{FEFF}').unwrap_or(patch);
        // A patch for a file with lone CR endings may use them too.
        let newline = if only_cr(patch) { '\r' } else { '\n' };
        let mut lines: Vec<&str> = patch.split(newline).collect();
        let ended = lines.last().is_some_and(|last| last.trim().is_empty());
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let marker = lines.iter().find(|line| line.trim_start().starts_with("*** "));
        let crlf = marker.is_some_and(|line| line.ends_with('\r'));
        let before = lines.iter().take_while(|line| !line.trim().eq_ignore_ascii_case(BEGIN) && header(line).is_none());
        let opener = before.last().map_or("", |line| line.trim());
        Self { lines, at: 0, crlf, ended, opener }
    }

    fn peek(&self) -> Option<&'a str> {
        let line = *self.lines.get(self.at)?;
        Some(if self.crlf { line.strip_suffix('\r').unwrap_or(line) } else { line })
    }

    fn error(line: usize, message: impl Into<String>) -> ParseError {
        ParseError { line, message: message.into() }
    }

    /// Builds an error that refers to the current line.
    fn error_here(&self, message: impl Into<String>) -> ParseError {
        Self::error((self.at + 1).min(self.lines.len().max(1)), message)
    }

    /// Moves to the first line of the patch, skipping a code fence or the start of a heredoc.
    fn skip_to_begin(&mut self) -> Result<(), ParseError> {
        for (index, line) in self.lines.iter().enumerate() {
            if line.trim().eq_ignore_ascii_case(BEGIN) {
                self.at = index + 1;
                return Ok(());
            }
            if header(line).is_some() {
                self.at = index;
                return Ok(());
            }
        }
        Err(Self::error(1, format!("`{BEGIN}` is missing; a patch starts with that line and ends with `{END}`")))
    }

    fn section(&mut self) -> Result<Option<PatchSection>, ParseError> {
        loop {
            let Some(line) = self.peek() else { return self.check_end().map(|()| None) };
            if line.trim().eq_ignore_ascii_case(END) {
                self.at += 1;
                self.after_end()?;
                return Ok(None);
            }
            if line.trim().is_empty() || line.trim().eq_ignore_ascii_case(END_OF_FILE) {
                self.at += 1;
                continue;
            }
            if self.closes_wrapper() {
                return Ok(None);
            }
            let Some((which, path)) = header(line) else {
                let message = format!(
                    "{} is not a header; expected `*** Add File: PATH`, `*** Update File: PATH`, `*** Delete File: PATH` or `{END}`",
                    excerpt(line)
                );
                return Err(self.error_here(message));
            };
            if path.is_empty() {
                return Err(self.error_here("the path is missing; write it after the colon"));
            }
            let number = self.at + 1;
            self.at += 1;
            let what = match which {
                0 => self.parse_added()?,
                1 => FileOperation::Delete,
                _ => self.parse_updated(number)?,
            };
            return Ok(Some(PatchSection { path: path.to_owned(), line: number, what }));
        }
    }

    /// Accepts the end of the input. If there is no end marker, the last line must be complete.
    fn check_end(&self) -> Result<(), ParseError> {
        if self.ended {
            return Ok(());
        }
        Err(self.error_here(format!("the patch ends in the middle of a line, without `{END}`; send the whole patch")))
    }

    /// Returns whether the line closes a code fence or heredoc that was opened before the patch, with no text after it.
    fn closes_wrapper(&self) -> bool {
        let opener = self.opener;
        let closer = self.peek().unwrap_or_default().trim();
        let heredoc = opener.split_once("<<").map(|(_, word)| word.trim_start_matches('-').trim_matches(['\'', '"', ' ']));
        let closes = (opener.starts_with("```") && closer == "```") || heredoc.is_some_and(|word| word == closer);
        closes && self.lines[self.at + 1..].iter().all(|line| line.trim().is_empty())
    }

    /// Checks that the text after the end contains nothing that looks like part of a patch.
    fn after_end(&mut self) -> Result<(), ParseError> {
        while let Some(line) = self.peek() {
            if line.starts_with(['+', '-', '@']) || line.trim_start().starts_with("*** ") {
                return Err(self.error_here(format!("{} follows `{END}`; put all sections before it", excerpt(line))));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn parse_added(&mut self) -> Result<FileOperation, ParseError> {
        let mut content = String::new();
        let mut blank = 0;
        while let Some(line) = self.peek() {
            if self.ends_body(line) {
                break;
            }
            if let Some(text) = line.strip_prefix('+') {
                // Empty lines without `+` are part of the content if more lines follow.
                content.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank)));
                content.push_str(text);
                content.push('\n');
            } else if line.trim().is_empty() {
                blank += 1;
            } else if line.starts_with("\\ No newline") {
                content.truncate(content.trim_end_matches('\n').len());
            } else if (content.is_empty() && line.starts_with("@@")) || line.trim().eq_ignore_ascii_case(END_OF_FILE) {
                // A hunk marker, which has no meaning here.
            } else {
                let message = format!("{} does not start with `+`; every line of an added file must", excerpt(line));
                return Err(self.error_here(message));
            }
            self.at += 1;
        }
        Ok(FileOperation::Add { content })
    }

    fn parse_updated(&mut self, number: usize) -> Result<FileOperation, ParseError> {
        let mut move_to = None;
        let mut hunks: Vec<PatchHunk> = Vec::new();
        // File names as in a unified diff.
        let names = |line: Option<&&str>, start| line.is_some_and(|line| line.starts_with(start));
        while let Some(line) = self.peek() {
            let trimmed = line.trim();
            if hunks.is_empty()
                && move_to.is_none()
                && let Some(path) = after_prefix(trimmed, MOVE)
            {
                if path.is_empty() {
                    return Err(self.error_here("the path is missing; write it after the colon"));
                }
                move_to = Some(path.to_owned());
            } else if hunks.is_empty() && trimmed.is_empty() {
                // Between the file name and the first hunk.
            } else if hunks.is_empty() && names(self.lines.get(self.at), "--- ") && names(self.lines.get(self.at + 1), "+++ ") {
                self.at += 1;
            } else if self.ends_body(line) {
                break;
            } else {
                self.hunk_line(line, &mut hunks)?;
            }
            self.at += 1;
        }
        if let Some(empty) = hunks.iter().find(|hunk| hunk.lines.is_empty()) {
            let message = "the hunk has no lines; add lines that start with a space, `-` or `+`";
            return Err(Self::error(empty.line, message));
        }
        if hunks.is_empty() && move_to.is_none() {
            let message = "nothing to update; add hunks of lines that start with a space, `-` or `+`, each after `@@`";
            return Err(Self::error(number, message));
        }
        Ok(FileOperation::Update { move_to, hunks })
    }

    fn hunk_line(&self, line: &str, hunks: &mut Vec<PatchHunk>) -> Result<(), ParseError> {
        let closed = hunks.last().is_none_or(|hunk| hunk.at_end);
        let padded_start = hunks.is_empty() && line.trim_start().starts_with("@@");
        if line.starts_with("@@") || padded_start {
            let header = hunk_header(line.trim());
            match hunks.last_mut() {
                // Several headers in a row are ordered from outermost to innermost.
                Some(hunk) if hunk.lines.is_empty() => hunk.headers.extend(header),
                _ => hunks.push(PatchHunk { line: self.at + 1, headers: header.into_iter().collect(), ..PatchHunk::default() }),
            }
            return Ok(());
        }
        if line.trim().eq_ignore_ascii_case(END_OF_FILE) {
            if let Some(hunk) = hunks.last_mut() {
                hunk.at_end = true;
            }
            return Ok(());
        }
        if closed {
            if line.trim().is_empty() {
                return Ok(());
            }
            hunks.push(PatchHunk { line: self.at + 1, ..PatchHunk::default() });
        }
        let Some(hunk) = hunks.last_mut() else { return Ok(()) };
        if line.starts_with("\\ No newline") {
            let last = hunk.lines.last().map(|line| line.kind);
            hunk.final_newline = Some(last == Some(PatchLineKind::Removed));
            return Ok(());
        }
        let (kind, text) = match line.chars().next() {
            None => (PatchLineKind::Context, ""),
            Some(' ') => (PatchLineKind::Context, &line[1..]),
            Some('-') => (PatchLineKind::Removed, &line[1..]),
            Some('+') => (PatchLineKind::Added, &line[1..]),
            // The leading space was omitted; no other line starts like this.
            Some('\t' | '\r') => (PatchLineKind::Context, line),
            Some(_) => {
                let message =
                    format!("{} does not start with a space (an unchanged line), `-` or `+`; put one before it", excerpt(line));
                return Err(self.error_here(message));
            }
        };
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        hunk.lines.push(PatchLine { kind, text, bare: line.trim_end_matches('\r').is_empty() });
        Ok(())
    }

    /// Returns whether the section ends before this line. If the line is an indented marker, it may be context, so the
    /// next line decides.
    fn ends_body(&self, line: &str) -> bool {
        let trimmed = line.trim();
        let rest = || self.lines[self.at + 1..].iter();
        if trimmed.eq_ignore_ascii_case(END) {
            return line.starts_with('*') || rest().all(|line| !line.starts_with(['+', '-', ' ', '@', '*']));
        }
        if let Some((which, _)) = header(line) {
            let next = rest().next().map_or("", |line| line.trim_end());
            return line.starts_with('*')
                || match which {
                    0 => next.starts_with('+'),
                    1 => next.trim_start().starts_with("***"),
                    _ => next.starts_with("@@") || next.trim_start().starts_with(MOVE),
                };
        }
        let unknown = line.starts_with("*** ") && !trimmed.eq_ignore_ascii_case(END_OF_FILE);
        unknown || (!line.starts_with([' ', '+', '-']) && !trimmed.is_empty() && self.closes_wrapper())
    }
}

/// Parses a file header. Returns the kind of header and the path.
fn header(line: &str) -> Option<(usize, &str)> {
    HEADERS.iter().enumerate().find_map(|(which, prefix)| Some((which, after_prefix(line.trim(), prefix)?)))
}

fn after_prefix<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let start = line.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| line[prefix.len()..].trim())
}

/// Returns the text after `@@`, without a unified diff's line numbers, which models tend to invent.
fn hunk_header(line: &str) -> Option<String> {
    let text = line.trim_start_matches('@').trim();
    let ranges = text.strip_prefix('-').and_then(|rest| rest.split_once("@@"));
    let text = match ranges {
        Some((numbers, rest)) if numbers.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '+' | '-' | ' ')) => rest.trim(),
        _ => text.strip_suffix("@@").map_or(text, str::trim_end),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn excerpt(line: &str) -> String {
    let shown: String = line.trim_end().chars().take(MAX_SHOWN_CHARACTERS).collect();
    let rest = if shown.len() < line.trim_end().len() { "…" } else { "" };
    format!("`{shown}{rest}`")
}
