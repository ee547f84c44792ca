//! Tests of commands on a terminal, and of the messages between aye and its helper.

use super::*;
use crate::sys::process::handshake;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};

async fn terminal(spec: CommandSpec) -> Terminal {
    start_terminal(spec, CancellationToken::new()).await.unwrap()
}

/// Returns a terminal's whole output and the result of the command that ran on it.
async fn to_the_end(mut running: Terminal) -> (String, TerminalResult) {
    let mut text = Vec::new();
    let read = async {
        let mut buffer = [0; 4096];
        loop {
            match running.screen.read(&mut buffer).await.unwrap() {
                0 => break,
                count => text.extend_from_slice(&buffer[..count]),
            }
        }
    };
    let ((), ended) = tokio::join!(read, running.ending);
    (String::from_utf8_lossy(&text).into_owned(), ended.unwrap())
}

#[tokio::test]
async fn a_command_has_its_own_controlling_terminal() {
    for kind in KINDS {
        let line = "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all; ps -o tpgid= -p $$ >/dev/null && echo < /dev/tty hello";
        let size = TerminalSize { rows: 33, columns: 101 };
        let (text, ended) = to_the_end(terminal(CommandSpec { terminal: Some(size), ..kind(line) }).await).await;
        assert!(
            text.contains("/dev/pts/") && text.contains("33 101") && text.contains("all") && text.contains("hello"),
            "{text}"
        );
        assert_eq!(ended.end, End::Exited(0));
    }
}

#[tokio::test]
async fn input_and_size_changes_reach_the_command() {
    let line = "trap 'stty size' WINCH; echo ready; read -r one; echo \"got $one\"; while :; do read -rt 0.05 two && break; done; echo bye";
    let mut running = terminal(spec(line)).await;
    let keys = running.keys.clone();
    let talk = async {
        let mut seen = String::new();
        let mut buffer = [0; 4096];
        let mut step = 0;
        loop {
            let count = running.screen.read(&mut buffer).await.unwrap();
            if count == 0 {
                return seen;
            }
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
            if step == 0 && seen.contains("ready") {
                keys.write_all(b"words\n").await.unwrap();
                step = 1;
            } else if step == 1 && seen.contains("got words") {
                keys.resize(TerminalSize { rows: 7, columns: 9 }).unwrap();
                step = 2;
            } else if step == 2 && seen.contains("7 9") {
                keys.write_all(b"end\n").await.unwrap();
                step = 3;
            }
        }
    };
    let (seen, ended) = tokio::join!(talk, running.ending);
    assert!(seen.contains("bye"), "{seen}");
    assert_eq!(ended.unwrap().end, End::Exited(0));
}

#[tokio::test]
async fn dropping_a_terminal_kills_its_processes() {
    for kind in KINDS {
        let word = word();
        let mut running = terminal(kind(&format!("{} echo started; sleep {word}", stubborn(&word)))).await;
        let mut buffer = [0; 64];
        let ending = tokio::spawn(running.ending);
        assert!(running.screen.read(&mut buffer).await.unwrap() > 0);
        ending.abort();
        assert!(ending.await.is_err());
        until("nothing of it lives", Duration::from_secs(5), || super::running(&word).is_empty());
    }
}

#[tokio::test]
async fn a_command_on_a_terminal_inherits_no_other_file_descriptor() {
    let (text, _) =
        to_the_end(terminal(spec("ls /proc/self/fd | sort -n | tr '\\n' ' '; ls -l /proc/$$/fd | grep -c ptmx")).await).await;
    assert_eq!(text.trim_end(), "0 1 2 3 0", "{text}");
}

/// Sends `text` with these descriptors, as a helper would.
fn say(to: &std::os::unix::net::UnixStream, text: &str, descriptors: &[i32]) {
    let mut bytes = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    let rights = [ControlMessage::ScmRights(descriptors)];
    let rights = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
    sendmsg::<()>(to.as_raw_fd(), &[IoSlice::new(&bytes)], rights, MsgFlags::empty(), None).unwrap();
}

fn open_descriptors() -> Vec<PathBuf> {
    let own = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    own.filter_map(|entry| std::fs::read_link(entry.path()).ok()).filter(|to| to.ends_with("only-here")).collect()
}

#[tokio::test]
async fn unexpected_file_descriptors_from_a_helper_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(directory.path().join("only-here")).unwrap();
    let raw = file.as_raw_fd();
    let quiet = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let everywhere = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let (quiet, everywhere) = (quiet.as_fd().as_raw_fd(), everywhere.as_fd().as_raw_fd());
    let pipe = nix::unistd::pipe().unwrap();
    let (reads, writes) = (pipe.0.as_raw_fd(), pipe.1.as_raw_fd());
    let many = vec![raw; 253];
    let cases: &[(&str, &[i32], bool)] = &[
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":false}}"#, &[], true),
        (r#"{"Ready":{"proxy":true,"terminal":false,"input":false}}"#, &[quiet], true),
        (r#"{"Ready":{"proxy":true,"terminal":false,"input":false}}"#, &[everywhere], false),
        (r#"{"Ready":{"proxy":true,"terminal":false,"input":false}}"#, &[], false),
        (r#"{"Ready":{"proxy":true,"terminal":false,"input":false}}"#, &[raw], false),
        (r#"{"Ready":{"proxy":false,"terminal":true,"input":false}}"#, &[raw], false),
        (r#"{"Ready":{"proxy":false,"terminal":true,"input":false}}"#, &[quiet], false),
        (r#"{"Ready":{"proxy":true,"terminal":true,"input":false}}"#, &[quiet], false),
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":false}}"#, &[raw], false),
        (r#"{"Ready":{"proxy":true,"terminal":false,"input":false}}"#, &[quiet, quiet], false),
        (r#"{"Ready":{"proxy":true,"terminal":true,"input":false}}"#, &many, false),
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":true}}"#, &[writes], true),
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":true}}"#, &[reads], false),
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":true}}"#, &[raw], false),
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":true}}"#, &[quiet], false),
        (r#"{"Ready":{"proxy":false,"terminal":false,"input":true}}"#, &[], false),
        (r#"{"Exited":0}"#, &[raw], false),
        ("{", &[], false),
        ("nonsense", &[raw], false),
    ];
    for (text, descriptors, good) in cases {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let control = tokio::net::UnixStream::from_std(ours).unwrap();
        say(&theirs, text, descriptors);
        drop(theirs);
        let answer = handshake::ready(&control).await;
        assert_eq!(matches!(answer, Ok(Ok(_))), *good, "{text} {}: {answer:?}", descriptors.len());
        drop((answer, control));
        assert_eq!(open_descriptors().len(), 1, "{text}: the received descriptors are closed");
    }
}
