//! Determines which programs a rule may allow to connect to hosts without a prompt, and parses the hosts in a rule.

use super::interpreters::kind;
use super::program_kinds::{DELETING, INTERPRETERS, NETWORK, PRIVILEGED};
use super::shell::{Arg, base};
use super::url;
use crate::protocol::SandboxAccess;

/// Subcommands that only download. Other subcommands of these programs can run code from the project.
const DOWNLOADS: &[(&str, &[&str])] = &[
    ("cargo", &["fetch", "update", "generate-lockfile", "vendor", "add", "search", "info", "tree", "metadata"]),
    ("go", &["mod", "get", "list"]),
    ("uv", &["lock"]),
    ("poetry", &["lock"]),
    ("bundle", &["lock", "outdated"]),
    ("mix", &["deps.get"]),
    ("rustup", &["check", "update"]),
];
/// Programs whose subcommands, except those in `DOWNLOADS`, can run code from the project or from packages.
const BUILDERS: &[&str] = &[
    "bazel",
    "bundle",
    "cargo",
    "composer",
    "dart",
    "dotnet",
    "flutter",
    "go",
    "mise",
    "mix",
    "nx",
    "poetry",
    "pip",
    "pip3",
    "pipenv",
    "rails",
    "rustup",
    "sbt",
    "stack",
    "swift",
    "terraform",
    "turbo",
    "uv",
    "zig",
    "cmake",
    "ninja",
    "meson",
    "conda",
];
/// Parses an entry of `hosts`, such as `index.example.com:443`.
///
/// # Errors
/// Returns a description of the problem if the entry is invalid.
pub(crate) fn parse_host(text: &str) -> Result<SandboxAccess, String> {
    let expected = "expected a host and a port, such as \"index.example.com:443\"";
    let port = text.rsplit_once(':').map(|(_, port)| port);
    let is_plain = !text.contains(['/', '@', '?', '#', '*', '\\']) && port.is_some_and(|port| port.parse::<u16>().is_ok());
    if !is_plain {
        return Err(format!("`{text}` is not a host with a port; {expected}"));
    }
    let to = url::parse(&format!("https://{text}/")).map_err(|why| format!("`{text}`: {why}; {expected}"))?;
    Ok(SandboxAccess::Host { host: to.host().to_string(), port: to.port() })
}

/// Returns why no rule can permit this command to connect to a host without a prompt, as a phrase that follows the
/// program name.
pub(crate) fn never_reaches(argv: &[Arg]) -> Option<&'static str> {
    let Some(program) = argv.first().map(|arg| arg.text.as_str()) else { return Some("is unknown") };
    let name = base(program);
    if program.contains('/') {
        return Some("is specified as a path");
    }
    if kind(name).is_some() || INTERPRETERS.contains(&name) {
        return Some("runs other code");
    }
    if NETWORK.contains(&name) {
        return Some("can send any data");
    }
    if PRIVILEGED.contains(&name) || DELETING.contains(&name) {
        return Some("does more than download");
    }
    if is_download(argv) || !BUILDERS.contains(&name) {
        return None;
    }
    Some("can run project code with this subcommand")
}

/// Returns whether a command only downloads, based on its program and subcommand.
pub(crate) fn is_download(argv: &[Arg]) -> bool {
    let [program, subcommand, ..] = argv else { return false };
    let downloads = DOWNLOADS.iter().find(|(name, _)| *name == program.text);
    downloads.is_some_and(|(_, subcommands)| subcommands.contains(&subcommand.text.as_str()))
}
