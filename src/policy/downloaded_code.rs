//! Finds the parts of a command line that run code which the same line downloads: `curl URL -o i.sh && bash i.sh`.

use super::computed_code::runs_text;
use super::effect::{downloads, hosts};
use super::program_kinds::runs_its_input;
use super::shell::{Arg, Invocation, ParsedLine, SimpleCommand, base, files_run_by, read};
use std::collections::HashSet;

/// Options of downloaders whose value is the output file.
const OUTPUTS: &[&str] = &["--output", "--output-document", "--out"];
/// Programs that unpack an archive, whose file names are unknown.
const UNPACKING: &[&str] = &[
    "tar", "gtar", "bsdtar", "unzip", "bsdunzip", "7z", "7za", "7zr", "unar", "cpio", "gunzip", "gzip", "unxz", "xz", "zstd",
    "unzstd", "bunzip2", "bzip2",
];
const COPYING: &[&str] = &["cp", "mv", "ln", "install"];

/// Records in each part of a line whether it runs downloaded code, and the hosts from which the line downloads.
pub(super) fn mark_downloaded_code(line: &mut ParsedLine) {
    let from: Vec<String> = line.parts.iter().flat_map(downloaders).flat_map(hosts).collect();
    let Some(first) = line.parts.iter().position(|part| downloaders(part).next().is_some()) else { return };
    // In a pipeline, any later command can receive the downloaded data.
    let receives = |at: usize, part: &SimpleCommand| part.piped && at > first;
    let mut files = DownloadedFiles::default();
    // A copy can precede the download, as in a loop.
    for _ in 0..2 {
        for (at, part) in line.parts.iter().enumerate() {
            files.add(part, receives(at, part));
        }
    }
    for (at, part) in line.parts.iter_mut().enumerate() {
        if files.are_run_by(part, receives(at, part)) {
            part.downloaded = Some(from.clone());
        }
    }
}

fn downloaders(part: &SimpleCommand) -> impl Iterator<Item = &Invocation> {
    part.invocations.iter().filter(|one| downloads(one.base()))
}

/// Files that contain downloaded data.
#[derive(Default)]
struct DownloadedFiles {
    names: HashSet<String>,
    /// Last components of URLs, which may be stored in any directory.
    last_components: HashSet<String>,
    /// Whether an archive was unpacked, so that any file may have been downloaded.
    unpacked: bool,
}

impl DownloadedFiles {
    fn contain(&self, file: &Arg) -> bool {
        let name = plain_name(&file.text);
        self.names.contains(name) || self.last_components.contains(base(name)) || self.unpacked && !name.starts_with('/')
    }

    /// Adds the files that a command downloads, or to which it copies downloaded data.
    fn add(&mut self, part: &SimpleCommand, receives: bool) {
        let reads = |one: &Invocation| !self.unpacked && one.argv[1..].iter().any(|arg| self.contain(arg));
        if !receives && downloaders(part).next().is_none() && !part.invocations.iter().any(reads) {
            return;
        }
        let targets =
            part.redirects.iter().filter(|redirect| !redirect.reads_only).filter_map(|redirect| redirect.target.as_ref());
        self.names.extend(targets.map(|target| plain_name(&target.text).to_owned()));
        for one in &part.invocations {
            let words = &one.argv[1..];
            match one.base() {
                "tee" => self.names.extend(words.iter().map(|word| plain_name(&word.text).to_owned())),
                name if downloads(name) => self.add_outputs(name, words),
                name if UNPACKING.contains(&name) => self.unpacked = true,
                name if COPYING.contains(&name) => {
                    let [sources @ .., last] = words else { continue };
                    let to = plain_name(&last.text).to_owned();
                    self.names.extend(sources.iter().map(|from| format!("{}/{}", to.trim_end_matches('/'), base(&from.text))));
                    self.names.insert(to);
                }
                _ => {}
            }
        }
    }

    /// Adds the files in which a downloader stores data.
    fn add_outputs(&mut self, program: &str, words: &[Arg]) {
        let is_cluster = |text: &str| text.starts_with('-') && !text.starts_with("--");
        let mut stores_by_url = program != "curl";
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let next = || words.get(at + 1).map(|next| next.text.as_str());
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let output = if OUTPUTS.contains(&name) {
                value.or_else(next)
            } else if is_cluster(text)
                && let Some(option) = text.find(['o', 'O'])
            {
                stores_by_url |= text.contains('O');
                Some(&text[option + 1..]).filter(|value| !value.is_empty()).or_else(next)
            } else {
                stores_by_url |= text.starts_with("--remote-name");
                None
            };
            self.names.extend(output.map(|output| plain_name(output).to_owned()));
        }
        if stores_by_url {
            let addresses = words.iter().map(|word| word.text.split(['?', '#']).next().unwrap_or_default());
            let addresses = addresses.filter(|address| !address.starts_with('-') && address.contains('/'));
            self.last_components.extend(addresses.map(|address| base(address).to_owned()).filter(|name| !name.is_empty()));
        }
    }

    /// Returns whether a command runs downloaded code. `receives` specifies whether its input may be downloaded.
    fn are_run_by(&self, part: &SimpleCommand, receives: bool) -> bool {
        let is_run = |one: &Invocation| files_run_by(one).any(|file| self.contain(file)) || receives && runs_text(&one.argv);
        let reads_code = part.reads_code || part.invocations.iter().any(runs_its_input);
        let inputs = || part.redirects.iter().filter(|redirect| redirect.reads_only);
        let reads_file = || inputs().any(|redirect| redirect.target.as_ref().is_some_and(|target| self.contain(target)));
        // `sh -c 'curl URL | sh'`
        let is_nested = || part.invocations.iter().any(|one| one.wrapped && downloads(one.base()));
        part.invocations.iter().any(is_run)
            || reads_code && (receives || reads_file() || is_nested())
            || (reads_code || part.invocations.iter().any(runs_unknown_code)) && substitutes_download(part)
    }
}

/// Returns whether an interpreter runs a file or code that is known only at run time, such as `<(curl URL)`.
fn runs_unknown_code(invocation: &Invocation) -> bool {
    let is_code = |pair: &[Arg]| matches!(pair[0].text.as_str(), "-c" | "-e" | "--eval" | "-r" | "-p") && !pair[1].is_known();
    files_run_by(invocation).any(|file| !file.is_known()) || invocation.argv.windows(2).any(is_code)
}

/// Returns whether a substitution in the text of a command downloads data.
fn substitutes_download(part: &SimpleCommand) -> bool {
    part.text.contains(['(', '`']) && read(&part.text).parts.iter().any(|inner| downloaders(inner).next().is_some())
}

fn plain_name(name: &str) -> &str {
    name.trim_start_matches("./")
}
