//! Generates shell completions and manual pages from the command-line definition.

use super::definition::Cli;
use super::examples::examples;
use super::help;
use crate::config::{Credentials, Directories, provider_variables};
use crate::host::exit::Exit;
use crate::host::policy_layers::MANAGED;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::path::{Path, PathBuf};

/// Environment variables that aye reads, excluding those of model providers.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("AYE_CONFIG_DIR", "The directory for your settings and policy. The default is ~/.config/aye."),
    ("AYE_DATA_DIR", "The directory for sessions, artifacts and logs. The default is ~/.local/share/aye."),
    ("AYE_LOG", "Log filter, for example aye=debug, or off. It overrides --verbose."),
    ("AYE_REDUCE_MOTION", "Reduces motion in the full-screen UI, unless empty or 0."),
    ("AYE", "Set to 1 in commands that aye runs. aye then rejects options that would extend permissions, such as --trust."),
    ("NO_COLOR", "Disables colours, unless empty."),
    ("VISUAL, EDITOR", "The editor for drafts. The default is vi."),
    ("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "The proxy for requests to model providers."),
    ("LC_ALL, LC_CTYPE, LANG", "The locale. Without UTF-8, aye draws with ASCII characters only."),
];

/// Returns a completion script that also completes global options after every subcommand.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "aye", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the manual page of `aye` itself.
pub(crate) fn manual() -> io::Result<String> {
    page(&build_command(), "").map(|page| String::from_utf8_lossy(&page).into_owned())
}

/// Writes the manual pages of `aye` and all its subcommands.
pub(crate) fn write_manual(directory: &Path) -> io::Result<()> {
    write_pages(&build_command(), "", directory)
}

fn build_command() -> Command {
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    command
}

/// Writes the manual pages of a command and its subcommands. `path` consists of the words that follow `aye`.
fn write_pages(command: &Command, path: &str, directory: &Path) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(sub, format!("{path} {}", sub.get_name()).trim_start(), directory)?;
    }
    std::fs::write(directory.join(Man::new(command.clone()).get_filename()), page(command, path)?)
}

fn page(command: &Command, path: &str) -> io::Result<Vec<u8>> {
    let source = format!("aye {}", crate::host::version::version());
    let man = Man::new(command.clone()).source(source).manual("aye manual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    let codes: Vec<_> = Exit::ALL.iter().map(|exit| (exit.code().to_string(), exit.meaning().to_owned())).collect();
    list(&mut roff, "EXIT STATUS", &codes);
    if path.is_empty() {
        list(&mut roff, "ENVIRONMENT", &environment());
        list(&mut roff, "FILES", &files());
    }
    roff.control("SH", ["EXAMPLES"]);
    for (comment, line) in examples(path) {
        roff.control("PP", []).text([roman(format!("{comment}:"))]);
        roff.control("PP", []).control("RS", ["4"]).control("nf", []).text([bold(*line)]).control("fi", []).control("RE", []);
    }
    see_also(&mut roff, command, path);
    roff.to_writer(&mut text)?;
    if path.is_empty() {
        man.render_version_section(&mut text)?;
    }
    Ok(text)
}

/// Adds a section that lists names, each with its text.
fn list(roff: &mut Roff, section: &str, entries: &[(String, String)]) {
    roff.control("SH", [section]);
    for (name, text) in entries {
        roff.control("TP", []).text([bold(name.as_str())]).text([roman(text.as_str())]);
    }
}

fn see_also(roff: &mut Roff, command: &Command, path: &str) {
    roff.control("SH", ["SEE ALSO"]);
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut pages: Vec<_> = subs.filter_map(Command::get_display_name).map(|name| format!("{name}(1)")).collect();
    if !path.is_empty() {
        roff.text([roman("See aye(1) for global options, environment variables and files.")]);
        if let Some((parents, _)) = path.rsplit_once(' ') {
            pages.insert(0, format!("aye-{}(1)", parents.replace(' ', "-")));
        }
    }
    if !pages.is_empty() {
        roff.control("PP", []).text([roman(pages.join(", "))]);
    }
}

fn environment() -> Vec<(String, String)> {
    let (keys, addresses) = provider_variables();
    let own = ENVIRONMENT.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let of_providers = [
        (keys.join(", "), "API keys for the model providers. They take precedence over saved keys.".to_owned()),
        (addresses.join(", "), "Addresses of the model providers, for proxies and gateways.".to_owned()),
    ];
    own.chain(of_providers).collect()
}

/// Returns the files that aye uses, each with its default path and a description.
fn files() -> Vec<(String, String)> {
    let usual = Directories::new("~/.config/aye", "~/.local/share/aye");
    let credentials = Credentials::in_directories(&usual).file().map(Path::to_owned);
    let (config, data) = (|name: &str| usual.config.join(name), |name: &str| usual.data.join(name));
    let of_user = [
        (Some(usual.config_file()), "Your settings. `aye config keys` lists the keys."),
        (Some(config("policy.toml")), "Your policy. `aye policy init` creates one."),
        (Some(usual.keymap_file()), "Your key bindings for the full-screen UI."),
        (credentials, "API keys and tokens, if the system has no keyring. Only you can read it."),
        (Some(config("commands/")), "Your slash commands, as Markdown files."),
        (Some(config("tools/")), "Manifests of your custom tools."),
        (Some(config("themes/")), "Your colour themes."),
        (Some(config("projects/")), "Saved rules and trust decisions, by project."),
        (Some(PathBuf::from(MANAGED)), "The managed policy of this system. No other policy can loosen it."),
        (
            Some(PathBuf::from(".aye/")),
            "A project's settings, policy, slash commands and tools. aye uses them once you trust it.",
        ),
        (Some(PathBuf::from(".mcp.json")), "A project's MCP servers. aye uses them once you trust it."),
        (Some(PathBuf::from("AGENTS.md")), "A project's instructions for the model. aye uses them once you trust it."),
        (Some(data("aye.db")), "Sessions."),
        (Some(data("artifacts/")), "Long outputs and images from sessions."),
        (Some(data("logs/")), "Logs, one file per day."),
        (Some(data("history.jsonl")), "Prompt history of the full-screen UI."),
        (Some(data("pastes.jsonl")), "Fingerprints of long pastes."),
    ];
    let line = |(path, text): (Option<PathBuf>, &str)| Some((path?.display().to_string(), text.to_owned()));
    of_user.into_iter().filter_map(line).collect()
}
