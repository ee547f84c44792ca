//! Effects of programs that use the network or act on other machines.

use super::{Arg, CommandEffect, join_names, non_option_words, quoted};
use crate::policy::program_kinds::NETWORK;
use crate::policy::shell::Invocation;
use crate::policy::url::parse;
use crate::protocol::Risk;

/// Programs that download from the URLs in their arguments.
const DOWNLOADERS: &[&str] = &["curl", "wget", "aria2c", "http", "xh", "fetch", "ftp", "lynx", "w3m"];
/// Long options that make a downloader send data.
const SENDS: &[&str] = &[
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--data-ascii",
    "--json",
    "--form",
    "--form-string",
    "--upload-file",
    "--post-data",
    "--post-file",
    "--body-data",
    "--body-file",
];
const METHODS: &[&str] = &["-X", "--request", "--method"];
const SSH_VALUES: &[&str] =
    &["-i", "-p", "-l", "-o", "-F", "-L", "-R", "-D", "-J", "-b", "-c", "-e", "-m", "-S", "-W", "-w", "-P"];

pub(crate) fn uses(program: &str) -> bool {
    NETWORK.contains(&program)
}

pub(crate) fn downloads(program: &str) -> bool {
    DOWNLOADERS.contains(&program)
}

/// Returns the hosts in the URLs that are passed to a program.
pub(crate) fn hosts(invocation: &Invocation) -> Vec<String> {
    extract_hosts(&invocation.argv[1..])
}

fn extract_hosts(words: &[Arg]) -> Vec<String> {
    let address = |word: &&Arg| word.is_known() && word.text.contains("://");
    let host = |word: &Arg| Some(parse(&word.text).ok()?.url_host().to_string());
    words.iter().filter(address).filter_map(host).collect()
}

/// Returns the effect of a program that uses the network.
pub(crate) fn effect(program: &str, words: &[Arg]) -> Option<CommandEffect> {
    match program {
        _ if downloads(program) => Some(download_effect(program, words)),
        "ssh" | "mosh" => Some(remote_effect(words, "runs commands on")),
        "sftp" => Some(remote_effect(words, "transfers files with")),
        "scp" | "rsync" => copy_effect(words),
        "ping" | "dig" | "nslookup" | "host" | "traceroute" => Some(remote_effect(words, "connects to")),
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => Some(CommandEffect::new(Risk::Medium, "opens network connections")),
        _ if uses(program) => Some(CommandEffect::new(Risk::Medium, "uses the network")),
        _ => None,
    }
}

fn download_effect(program: &str, words: &[Arg]) -> CommandEffect {
    let sends = words.iter().enumerate().any(|(index, word)| {
        let text = word.text.as_str();
        let name = text.split('=').next().unwrap_or(text);
        let value =
            || text.split_once('=').map(|(_, value)| value).or_else(|| words.get(index + 1).map(|next| next.text.as_str()));
        let writes = |method: &str| !crate::policy::url::is_read_method(&method.to_ascii_uppercase());
        // Single-letter options differ between programs, so they are recognized only for curl.
        let sends_by_letter = || match sending_option(text) {
            Some(("X", "")) => words.get(index + 1).is_some_and(|next| writes(&next.text)),
            Some(("X", method)) => writes(method),
            found => found.is_some(),
        };
        SENDS.contains(&name) || METHODS.contains(&name) && value().is_some_and(writes) || program == "curl" && sends_by_letter()
    });
    let hosts = join_names(&extract_hosts(words));
    let object = hosts.unwrap_or_else(|| "the network".to_owned());
    if sends {
        CommandEffect::new(Risk::High, format!("sends data to {object}"))
    } else {
        CommandEffect::new(Risk::Medium, format!("downloads from {object}"))
    }
}

/// Returns the letter of a curl option that sends data or sets the method, and the text after that letter. The option
/// may be part of a cluster such as `-sXPOST`.
fn sending_option(word: &str) -> Option<(&str, &str)> {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    // Each of these options uses the rest of the word as its value.
    let at = letters.find(|letter| "dFTXoHAeubcKmwErCUtyYzDQPx".contains(letter))?;
    let found = letters.get(at..=at)?;
    "dFTX".contains(found).then_some((found, &letters[at + 1..]))
}

fn remote_effect(words: &[Arg], verb: &str) -> CommandEffect {
    let host =
        non_option_words(words, SSH_VALUES).first().map_or_else(|| "another machine".to_owned(), |word| quoted(&word.text));
    let risk = if verb.starts_with("connects") { Risk::Medium } else { Risk::High };
    CommandEffect::new(risk, format!("{verb} {host}"))
}

/// Returns the effect of `scp` or `rsync`, which can also copy between local paths.
fn copy_effect(words: &[Arg]) -> Option<CommandEffect> {
    let plain = non_option_words(words, &[]);
    let remote = |word: &&Arg| {
        let before = word.text.split(':').next().unwrap_or_default();
        word.text.contains(':') && !before.contains('/') || word.text.contains("://")
    };
    let (last, sources) = plain.split_last()?;
    if remote(last) {
        return Some(CommandEffect::new(Risk::High, format!("copies files to {}", quoted(&last.text))));
    }
    let from = sources.iter().copied().find(|word| remote(word))?;
    Some(CommandEffect::new(Risk::Medium, format!("downloads from {}", quoted(&from.text))))
}
