//! Reads the clipboard content: an image, files, or text.

use super::is_remote;
use crate::sys::programs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time after which a clipboard program is reported as not responding. It is generous because reading a large image
/// takes a while.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the clipboard content in bytes.
const MAX_BYTES: u64 = 32 << 20;
/// Image types that models accept, ordered by how well they suit screenshots.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const FILES: &str = "text/uri-list";
const TEXTS: [&str; 4] = ["text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING"];
/// AppleScript expression that evaluates to the image in the clipboard.
const SCRIPT: &str = "the clipboard as «class PNGf»";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClipboardContent {
    Image(Vec<u8>),
    /// Text, or the paths of files, one per line.
    Text(String),
    Nothing,
}

/// Returns the clipboard content and the name of the program that read it, or the reason why it cannot be read.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<(ClipboardContent, &'static str), String> {
    let paths = variable("PATH").unwrap_or_default();
    let in_path = |name: &str| programs::find(name, &paths);
    let (wayland, x11) = (variable("WAYLAND_DISPLAY").is_some(), variable("DISPLAY").is_some());
    if is_remote(&variable) && !x11 {
        let words = "over SSH, aye cannot read the clipboard of your local machine; copy the image here (scp) and attach it with @, \
                     or log in with `ssh -X` and install xclip";
        return Err(words.to_owned());
    }
    if wayland && !is_remote(&variable) {
        if let Some(program) = in_path("wl-paste") {
            return read_by_type(&ClipboardReader {
                program,
                list: &["--list-types"],
                of: &["--no-newline", "--type"],
                after: &[],
            })
            .map(|held| (held, "wl-paste"));
        }
        if !x11 || in_path("xclip").is_none() {
            return Err("cannot read the clipboard: install wl-clipboard, which provides wl-paste".to_owned());
        }
    }
    if x11 {
        let Some(program) = in_path("xclip") else {
            return Err("cannot read the clipboard: install xclip".to_owned());
        };
        let list = &["-selection", "clipboard", "-o", "-t", "TARGETS"];
        return read_by_type(&ClipboardReader { program, list, of: &["-selection", "clipboard", "-t"], after: &["-o"] })
            .map(|held| (held, "xclip"));
    }
    if let Some(found) = read_macos(&in_path) {
        return found;
    }
    Err("no clipboard: neither WAYLAND_DISPLAY nor DISPLAY is set; attach the file with @".to_owned())
}

/// A program that can list the available types and print the content as one of them.
struct ClipboardReader {
    program: PathBuf,
    list: &'static [&'static str],
    /// Arguments before the type; `after` contains the arguments that follow it.
    of: &'static [&'static str],
    after: &'static [&'static str],
}

fn read_by_type(offered: &ClipboardReader) -> Result<ClipboardContent, String> {
    // For an empty clipboard, programs exit with different codes.
    let Ok(types) = run_and_read(&offered.program, offered.list) else { return Ok(ClipboardContent::Nothing) };
    let types = String::from_utf8_lossy(&types).into_owned();
    let types: Vec<&str> = types.lines().map(str::trim).collect();
    let get = |kind: &str| {
        let arguments: Vec<&str> = offered.of.iter().copied().chain([kind]).chain(offered.after.iter().copied()).collect();
        run_and_read(&offered.program, &arguments)
    };
    if let Some(kind) = IMAGES.into_iter().find(|kind| types.contains(kind)) {
        return get(kind).map(ClipboardContent::Image);
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if types.contains(&FILES) {
        let lines = text(get(FILES)?);
        let files: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        return Ok(ClipboardContent::Text(files.join("\n")));
    }
    match TEXTS.into_iter().find(|kind| types.contains(kind)) {
        Some(kind) => Ok(ClipboardContent::Text(text(get(kind)?))),
        None => Ok(ClipboardContent::Nothing),
    }
}

fn read_macos(in_path: &impl Fn(&str) -> Option<PathBuf>) -> Option<Result<(ClipboardContent, &'static str), String>> {
    let (pngpaste, script) = (in_path("pngpaste"), in_path("osascript"));
    if pngpaste.is_none() && script.is_none() {
        return None;
    }
    // Both programs fail if the clipboard contains no image.
    if let Some(bytes) = pngpaste.and_then(|program| run_and_read(&program, &["-"]).ok()).filter(|bytes| !bytes.is_empty()) {
        return Some(Ok((ClipboardContent::Image(bytes), "pngpaste")));
    }
    if let Some(bytes) =
        script.and_then(|program| run_and_read(&program, &["-e", SCRIPT]).ok()).and_then(|told| decode_applescript(&told))
    {
        return Some(Ok((ClipboardContent::Image(bytes), "osascript")));
    }
    let text = in_path("pbpaste").and_then(|program| run_and_read(&program, &[]).ok()).unwrap_or_default();
    let held = if text.is_empty() {
        ClipboardContent::Nothing
    } else {
        ClipboardContent::Text(String::from_utf8_lossy(&text).into_owned())
    };
    Some(Ok((held, "pbpaste")))
}

/// Decodes AppleScript output such as `«data PNGf89504E47…»`. Returns `None` if it has another form.
fn decode_applescript(told: &[u8]) -> Option<Vec<u8>> {
    let told = std::str::from_utf8(told).ok()?.trim();
    let digits = told.strip_prefix("«data PNGf")?.strip_suffix('»')?;
    let pairs = digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

/// Runs a program and returns its output, limited in size and time.
fn run_and_read(program: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let Some(output) = child.stdout.take() else { return Err(format!("cannot read the output of {name}")) };
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        // The receiver may already have been dropped.
        let _ = tell.send(read.map(|_| bytes));
    });
    let read = told.recv_timeout(TIMEOUT);
    let whole = matches!(&read, Ok(Ok(bytes)) if bytes.len() as u64 <= MAX_BYTES);
    if !whole {
        child.kill().map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    match read {
        Ok(Ok(_)) if !whole => Err(format!("the clipboard content is larger than {} MB", MAX_BYTES >> 20)),
        Ok(Ok(bytes)) if status.success() => Ok(bytes),
        Ok(Ok(_)) => Err(format!("{name} failed: {status}")),
        Ok(Err(error)) => Err(failed(error)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(format!("{name} did not respond")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn programs(scripts: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, script) in scripts {
            let path = directory.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn held(directory: &Path, variables: &[&str]) -> Result<(ClipboardContent, &'static str), String> {
        read(|name| match name {
            "PATH" => Some(directory.to_string_lossy().into_owned()),
            name => variables.contains(&name).then(|| "x".to_owned()),
        })
    }

    const WL: &str = r#"case "$*" in
        --list-types) printf 'text/plain\nimage/png\n' ;;
        "--no-newline --type image/png") printf '\211PNG' ;;
        *) exit 1 ;;
    esac"#;

    #[test]
    fn images_are_preferred_over_text() {
        let directory = programs(&[("wl-paste", WL)]);
        let found = held(directory.path(), &["WAYLAND_DISPLAY"]).unwrap();
        assert_eq!(found, (ClipboardContent::Image(b"\x89PNG".to_vec()), "wl-paste"));
    }

    #[test]
    fn copied_files_are_pasted_as_urls_and_an_empty_clipboard_as_nothing() {
        let files = r#"case "$*" in
            *TARGETS) printf 'TARGETS\ntext/uri-list\nUTF8_STRING\n' ;;
            *uri-list*) printf '# two\r\nfile:///a%%20b\r\nfile:///c\r\n' ;;
        esac"#;
        let directory = programs(&[("xclip", files)]);
        let found = held(directory.path(), &["DISPLAY"]).unwrap();
        assert_eq!(found, (ClipboardContent::Text("file:///a%20b\nfile:///c".to_owned()), "xclip"));
        let directory = programs(&[("xclip", "exit 1")]);
        assert_eq!(held(directory.path(), &["DISPLAY"]).unwrap().0, ClipboardContent::Nothing);
    }

    #[test]
    fn images_from_osascript_are_decoded_from_hex() {
        let directory = programs(&[("osascript", "echo '«data PNGf89504E47»'"), ("pbpaste", "printf words")]);
        assert_eq!(held(directory.path(), &[]).unwrap(), (ClipboardContent::Image(b"\x89PNG".to_vec()), "osascript"));
        let directory = programs(&[("osascript", "exit 1"), ("pbpaste", "printf words")]);
        assert_eq!(held(directory.path(), &[]).unwrap(), (ClipboardContent::Text("words".to_owned()), "pbpaste"));
    }

    #[test]
    fn a_missing_clipboard_program_is_an_error_with_the_package_to_install() {
        let directory = programs(&[("wl-paste", WL), ("xclip", "exit 1")]);
        let said = |directory: &Path, variables: &[&str]| held(directory, variables).unwrap_err();
        let none = programs(&[]);
        assert!(said(none.path(), &["WAYLAND_DISPLAY"]).contains("install wl-clipboard"));
        assert!(said(none.path(), &["DISPLAY"]).contains("install xclip"));
        assert!(said(none.path(), &[]).contains("no clipboard"));
        assert!(said(directory.path(), &["SSH_TTY", "WAYLAND_DISPLAY"]).contains("ssh -X"), "another machine's clipboard");
        assert_eq!(held(directory.path(), &["SSH_TTY", "DISPLAY"]).unwrap().1, "xclip", "forwarded X");
    }
}
