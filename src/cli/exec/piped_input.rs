//! Reads piped input for a run without a screen. The input is limited in size, decoded and attached to the prompt.

use crate::host::error::CliError;
use crate::policy::redact::Redactor;
use crate::ports::{Artifacts, NewArtifact};
use crate::protocol::{ArtifactKind, Problem, cut_position_after, cut_position_before, size, with_input};
use crate::sys::socket::has_data;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum size of piped input in bytes.
pub(crate) const MAX_READ: usize = 10 << 20;
/// Maximum number of bytes of piped input that are included in the prompt.
const MAX_ATTACHED: u64 = 256 << 10;
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of chunks that are read ahead.
const CHUNKS_AHEAD: usize = 4;
/// Name of the artifact that stores long input.
const NAME: &str = "standard input";

/// Timeouts for reading piped input.
#[derive(Clone, Copy)]
struct Patience {
    /// Time after which a notice says that aye is waiting for input.
    quiet: Duration,
    /// Time after which the input is treated as empty if no byte has arrived. This is necessary because aye may have
    /// inherited a pipe to which nothing is written.
    first_byte: Duration,
}

const TIMEOUT: Patience = Patience { quiet: Duration::from_secs(1), first_byte: Duration::from_secs(3) };

/// Piped input after decoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PipedInput {
    pub text: String,
}

/// Reads standard input to its end if it is a pipe or a file. Returns `None` for a terminal, `/dev/null`, a socket, a
/// closed descriptor or empty input, and if no data arrives in time. `say` receives notices for the user.
///
/// # Errors
///
/// Returns an error if standard input cannot be read, is larger than [`MAX_READ`], or is not text.
pub(crate) fn read(say: &mut dyn FnMut(Problem)) -> Result<Option<PipedInput>, CliError> {
    if !is_connected() {
        if has_data(io::stdin()) {
            let notice = Problem::new("standard input is a socket, which aye does not read; continuing without it");
            say(notice.hint("start aye with a pipe or a file as its standard input, or pass `--no-stdin`"));
        }
        return Ok(None);
    }
    let (tell, told) = sync_channel(CHUNKS_AHEAD);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = match input.read(&mut chunk) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(count) => {
                    chunk.truncate(count);
                    Ok(chunk)
                }
                Err(error) => Err(error),
            };
            let ends = read.is_err();
            if tell.send(read).is_err() || ends {
                return;
            }
        }
    });
    let collected = collect(&told, TIMEOUT, say);
    let bytes = collected.map_err(|error| CliError::usage(Problem::new("cannot read standard input").because(error)))?;
    let text = decode(&bytes.ok_or_else(too_large_error)?, say)?;
    Ok((!text.trim().is_empty()).then_some(PipedInput { text }))
}

/// Returns the error for piped input that is larger than [`MAX_READ`].
pub(crate) fn too_large_error() -> CliError {
    let most = size(MAX_READ as u64);
    CliError::usage(format!("standard input is larger than {most}"))
        .hint("save it to a file in the workspace and name the file in the prompt")
        .hint("pass `--no-stdin` to run without it")
}

/// Returns whether standard input is a pipe or a file. Terminals, devices and sockets are ignored.
fn is_connected() -> bool {
    let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata()).is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_file() || kind.is_fifo()
    })
}

/// Collects all bytes of the input. Returns `None` if there are more than [`MAX_READ`].
fn collect(
    chunks: &Receiver<io::Result<Vec<u8>>>,
    patience: Patience,
    say: &mut dyn FnMut(Problem),
) -> io::Result<Option<Vec<u8>>> {
    let start = Instant::now();
    let mut bytes = Vec::new();
    let mut is_said = false;
    loop {
        let chunk = if !is_said {
            chunks.recv_timeout(patience.quiet.saturating_sub(start.elapsed()))
        } else if bytes.is_empty() {
            chunks.recv_timeout(patience.first_byte.saturating_sub(start.elapsed()))
        } else {
            chunks.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match chunk {
            Ok(chunk) => bytes.extend(chunk?),
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(bytes)),
            Err(RecvTimeoutError::Timeout) if is_said => {
                let seconds = patience.first_byte.as_secs();
                let notice = Problem::new(format!("no data on standard input for {seconds} s; continuing without it"));
                let notice = notice.hint("pass `--no-stdin` if there is no input");
                say(notice.hint("write the output of a slow program to a file first"));
                return Ok(Some(Vec::new()));
            }
            Err(RecvTimeoutError::Timeout) => {
                say("reading standard input…".into());
                is_said = true;
            }
        }
        if bytes.len() > MAX_READ {
            return Ok(None);
        }
    }
}

/// Decodes text in UTF-8, UTF-16 (with a byte order mark) or Latin-1. If the text is mostly UTF-8, replaces invalid
/// bytes.
///
/// # Errors
///
/// Returns an error if the input is binary data.
pub(crate) fn decode(bytes: &[u8], say: &mut dyn FnMut(Problem)) -> Result<String, CliError> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes)
        && (encoding == UTF_16LE || encoding == UTF_16BE)
    {
        let text = encoding.decode_without_bom_handling(&bytes[mark..]).0;
        return Ok(text.into_owned());
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if looks_binary(bytes) {
        let problem = Problem::new("standard input is not text").because("the input contains binary data");
        return Err(CliError::usage(problem.hint("save it to a file and name the file in the prompt, as in `@data.bin`")));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    let (wide, invalid) = bytes.utf8_chunks().fold((0, 0), |(wide, invalid), chunk| {
        let more = chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        (wide + more, invalid + usize::from(!chunk.invalid().is_empty()))
    });
    if wide >= invalid {
        say("standard input is not valid UTF-8; invalid bytes were replaced".into());
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    say("standard input is not UTF-8; it was read as Latin-1".into());
    Ok(WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned())
}

/// Returns whether the input contains a NUL byte or more than 5% control characters.
fn looks_binary(bytes: &[u8]) -> bool {
    let controls = bytes.iter().filter(|byte| matches!(byte, 1..=6 | 14..=26 | 28..=31)).count();
    bytes.contains(&0) || controls * 20 > bytes.len()
}

/// Storage for long input, and the limit on how much of it fits into the prompt.
pub(crate) struct InputStorage<'a> {
    pub redactor: &'a Redactor,
    pub artifacts: Option<&'a dyn Artifacts>,
    /// Context window of the model in tokens. At most this many bytes of input are included, which corresponds to about
    /// a quarter of the context window.
    pub context_window: u64,
}

/// Returns the prompt followed by the input. If the input is too long, includes only its beginning and end, and stores
/// the complete redacted input as an artifact if possible.
pub(crate) fn attach(prompt: &str, input: &PipedInput, room: &InputStorage<'_>, say: &mut dyn FnMut(Problem)) -> String {
    let most = usize::try_from(room.context_window.min(MAX_ATTACHED)).unwrap_or(usize::MAX);
    if input.text.len() <= most {
        say(format!("attached standard input ({})", size(input.text.len() as u64)).into());
        return with_input(prompt, &input.text);
    }
    // Redact before cutting the text, so that no part of a secret remains.
    let text = room.redactor.redact(&input.text).text;
    let (head, tail) = head_and_tail(&text, most);
    let left_out = text.len() - head.len() - tail.len();
    let (way, told) = match room.artifacts.map(|artifacts| store(artifacts, &text)) {
        Some(Ok(uri)) => (
            format!("All of it is in {uri}; read it with ReadFile (`offset`, `limit`) or search it with Grep"),
            format!("; the model can read the rest in {uri}"),
        ),
        Some(Err(reason)) => {
            (format!("The rest could not be stored: {reason}"), format!("; the rest could not be stored: {reason}"))
        }
        None => ("The rest is not available".to_owned(), String::new()),
    };
    let notice = format!(
        "standard input is too long for the prompt ({}): the prompt contains its first {} and last {}{told}",
        size(text.len() as u64),
        size(head.len() as u64),
        size(tail.len() as u64),
    );
    say(notice.into());
    let marker = format!("[... {left_out} of {} bytes are omitted here. {way} ...]", text.len());
    with_input(prompt, &format!("{head}\n{marker}\n{tail}"))
}

/// Returns the beginning and the end of the text, whose combined length is at most `most`. The text is cut at line
/// breaks if there are any nearby.
fn head_and_tail(text: &str, most: usize) -> (Cow<'_, str>, Cow<'_, str>) {
    if text.len() <= most {
        return (Cow::Borrowed(text), Cow::Borrowed(""));
    }
    let half = most / 2;
    let (head, tail) = (&text[..cut_position_before(text, half)], &text[cut_position_after(text, text.len() - half)..]);
    let near = half / 8;
    let head = head.rfind('\n').filter(|end| head.len() - end <= near).map_or(head, |end| &head[..end]);
    let tail = tail.find('\n').filter(|end| *end <= near).map_or(tail, |end| &tail[end + 1..]);
    (Cow::Borrowed(head), Cow::Borrowed(tail))
}

fn store(artifacts: &dyn Artifacts, text: &str) -> Result<String, String> {
    let new = NewArtifact { kind: ArtifactKind::ToolOutput, name: NAME.to_owned(), content_type: "text/plain".to_owned() };
    let stored = artifacts.begin(new).and_then(|mut writer| {
        writer.write(text.as_bytes())?;
        writer.finish()
    });
    stored.map(|artifact| artifact.uri).map_err(|error| error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Patience = Patience { quiet: Duration::from_millis(1), first_byte: Duration::from_millis(5) };

    #[test]
    fn reading_stops_if_no_input_arrives_and_notices_report_the_wait_and_its_end() {
        let (tell, told) = sync_channel(1);
        let mut said = Vec::new();
        let collected = collect(&told, SHORT, &mut |notice| said.push(notice.text())).unwrap();
        assert_eq!(collected, Some(Vec::new()));
        assert!(matches!(&said[..], [wait, end] if wait.contains("reading") && end.contains("`--no-stdin`")), "{said:?}");
        drop(tell);
    }

    #[test]
    fn input_is_read_to_the_end_once_it_has_started() {
        let (tell, told) = sync_channel(2);
        tell.send(Ok(b"one ".to_vec())).unwrap();
        let writer = thread::spawn(move || {
            thread::sleep(SHORT.first_byte * 4);
            tell.send(Ok(b"two".to_vec())).unwrap();
        });
        let collected = collect(&told, SHORT, &mut |_| {}).unwrap();
        writer.join().unwrap();
        assert_eq!(collected, Some(b"one two".to_vec()));
    }

    #[test]
    fn endless_input_is_rejected_at_the_limit() {
        let (tell, told) = sync_channel(1);
        thread::spawn(move || while tell.send(Ok(vec![b'y'; 1 << 20])).is_ok() {});
        assert_eq!(collect(&told, TIMEOUT, &mut |_| {}).unwrap(), None);
        assert!(too_large_error().to_string().contains("10.0 MB"), "{}", too_large_error());
    }

    #[test]
    fn text_input_is_decoded_and_binary_input_is_rejected() {
        let decoded = |bytes: &[u8]| decode(bytes, &mut |_| {}).map_err(|error| error.to_string());
        assert_eq!(decoded("grüße".as_bytes()).unwrap(), "grüße");
        assert_eq!(decoded(b"\xEF\xBB\xBFhi").unwrap(), "hi");
        assert_eq!(decoded(b"\xFF\xFEh\0i\0").unwrap(), "hi");
        assert_eq!(decoded(b"gr\xFC\xDFe").unwrap(), "grüße");
        assert_eq!(decoded("ü ü \u{1b}[31mred\u{1b}[0m ".as_bytes()).unwrap(), "ü ü \u{1b}[31mred\u{1b}[0m ");
        assert_eq!(decoded(b"\xC3\xBC and \xFF").unwrap(), "ü and \u{FFFD}");
        assert!(decoded(b"\x7fELF\x02\x01\x01\0\0").unwrap_err().contains("binary data"));
    }

    #[test]
    fn long_input_keeps_its_start_and_end_and_the_omission_is_reported() {
        let redactor = Redactor::new(Vec::new(), [], || [7; 32]);
        let room = InputStorage { redactor: &redactor, artifacts: None, context_window: 1000 };
        let lines = (0..1000).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
        let mut said = Vec::new();
        let piped = PipedInput { text: lines.clone() };
        let prompt = attach("explain", &piped, &room, &mut |notice| said.push(notice.text()));
        assert!(prompt.starts_with("explain\n\n<stdin>\nline 0\n") && prompt.ends_with("line 999\n</stdin>"), "{prompt}");
        assert!(prompt.len() < 1300, "{}", prompt.len());
        let left_out: usize = prompt.split("[... ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let sent: usize = prompt.lines().filter(|line| line.starts_with("line ")).map(|line| line.len() + 1).sum();
        // The two line breaks at the cut are neither sent nor counted.
        assert!(lines.len().abs_diff(left_out + sent) <= 2, "{left_out} and {sent} of {}", lines.len());
        assert_eq!(said.len(), 1);
        let short = PipedInput { text: "a\n".to_owned() };
        assert_eq!(attach("explain", &short, &room, &mut |_| {}), "explain\n\n<stdin>\na\n</stdin>");
    }
}
