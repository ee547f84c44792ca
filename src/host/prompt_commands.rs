//! Handles slash commands in a prompt given on the command line, as in `aye exec "/fix 12"`.

use super::context::AppContext;
use super::mcp_servers::specs::specs;
use super::project::ProjectConfig;
use super::query::commands::CustomCommands;
use crate::protocol::{CustomCommand, Problem};
use crate::skills::{PROJECT_FOLDERS, SKILL_FILE};
use crate::tui;
use std::path::Path;
use strsim::damerau_levenshtein;

/// Full-screen UI commands that have an equivalent on the command line.
const EQUIVALENTS: &[(&[&str], &str)] = &[
    (&["model", "models"], "pass `-m PROVIDER/NAME` to choose a model; `aye models` lists them"),
    (&["mode", "plan"], "pass `--mode MODE` to set the mode"),
    (&["effort"], "pass `--effort EFFORT` to set the reasoning effort"),
    (&["budget"], "pass `--max-budget-usd DOLLARS` to limit the cost"),
    (&["continue", "resume", "sessions"], "run `aye exec -c` to continue the latest session, `aye sessions list` to list all"),
    (&["new", "clear", "reset"], "not needed: without `-c`, every run starts a new session"),
    (&["fork", "branch"], "run `aye exec --fork PROMPT` to continue in a copy of the latest session"),
    (&["undo", "rewind", "redo", "checkpoint", "restore"], "run `aye rewind` to undo changes"),
    (&["export"], "run `aye sessions export ID` to export a session"),
    (&["cost", "usage", "stats"], "run `aye usage` to show tokens and cost"),
    (&["mcp"], "run `aye mcp list` to list MCP servers"),
    (&["policy", "permissions", "approvals"], "run `aye policy show` to show the policy"),
    (&["status", "config", "settings"], "run `aye config show` to show the settings"),
    (&["help", "keys"], "run `aye help exec` for help"),
    (&["memory"], "run `aye memory list` to review proposals for instruction files"),
    (&["review", "findings"], "run `aye review` to review changes"),
    (&["setup", "auth", "login"], "run `aye setup` to choose the model and the policy again"),
];

/// Interpretation of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptMeaning {
    /// A prompt for the model.
    Prompt(String),
    /// A command that is available only in the full-screen UI, as typed by the user.
    OfScreen(String),
}

/// Slash commands that can be used in a prompt.
pub(crate) struct PromptCommands {
    own: Vec<CustomCommand>,
    /// Notices about command files.
    notices: Vec<String>,
    /// Workspace of an untrusted project, whose commands are ignored.
    untrusted: Option<std::path::PathBuf>,
    servers: Vec<String>,
}

impl PromptCommands {
    /// Reads the user's commands and, if the project is trusted, the project's commands.
    pub(crate) fn find(app: &AppContext, project: &ProjectConfig) -> Self {
        let commands = CustomCommands::new(app.directories.config.join("commands"), app.skills.clone(), app.plugins());
        commands.trust(project);
        let (own, notices) = commands.now();
        let untrusted = (!project.is_trusted()).then(|| app.workspace.clone());
        let servers = specs(app, Some(project)).0.into_iter().map(|server| server.name).collect();
        Self { own, notices, untrusted, servers }
    }

    /// Returns the notices about the command that is used in a prompt.
    pub(crate) fn notices(&self, text: &str) -> Vec<String> {
        let source = self.find_by_name(command_name(text).unwrap_or_default()).map(|command| command.source);
        let about = |notice: &&String| source.as_ref().is_some_and(|source| notice.contains(&format!("`{source}`")));
        self.notices.iter().filter(about).cloned().collect()
    }

    /// Determines how a prompt is interpreted. A prompt that begins with a path is not a command.
    ///
    /// # Errors
    /// Returns an error if the command is unknown or cannot be used in this way.
    pub(crate) fn parse(&self, text: String) -> Result<PromptMeaning, Problem> {
        let Some(name) = command_name(&text) else { return Ok(PromptMeaning::Prompt(text)) };
        if let Some(command) = self.find_by_name(name) {
            let arguments = text.trim()[1 + name.len()..].trim();
            return expand(&command, arguments).map(PromptMeaning::Prompt);
        }
        if tui::is_built_in_command(name) {
            return Ok(PromptMeaning::OfScreen(text));
        }
        let is_text = text.trim().contains('\n') || Path::new("/").join(name).exists();
        if is_text { Ok(PromptMeaning::Prompt(text)) } else { Err(self.unknown_command(name)) }
    }

    /// Finds a command by name. Built-in commands take precedence.
    fn find_by_name(&self, name: &str) -> Option<CustomCommand> {
        let is_free = !tui::is_built_in_command(name);
        CustomCommand::built_in(name).or_else(|| self.own.iter().find(|command| is_free && command.is_named(name)).cloned())
    }

    fn unknown_command(&self, name: &str) -> Problem {
        let problem = Problem::new(format!("unknown command `/{name}`"));
        let file = |root: &Path| root.join(".aye/commands").join(name.replace(':', "/")).with_extension("md");
        let skill = |root: &Path, folder: &str| root.join(folder).join(name).join(SKILL_FILE);
        let is_brought = |root: &Path| {
            let is_skill = || !name.contains(':') && PROJECT_FOLDERS.iter().any(|folder| skill(root, folder).is_file());
            file(root).is_file() || is_skill()
        };
        if self.untrusted.as_deref().is_some_and(is_brought) {
            let problem = problem.because("the command or skill belongs to this project, which is not trusted");
            return problem.hint("pass `--trust` to trust the project for this run, or start `aye` to review its files");
        }
        if name.split_once(':').is_some_and(|(server, _)| self.servers.iter().any(|known| known == server)) {
            return problem.hint("prompts of MCP servers work only in the full-screen UI: start `aye`");
        }
        let names = CustomCommand::BUILT_IN_NAMES.into_iter().chain(self.own.iter().map(|command| command.name.as_str()));
        let screen = tui::COMMANDS.iter().map(|(name, _)| name[1..].split(' ').next().unwrap_or_default());
        let near = names.chain(screen).map(|known| (damerau_levenshtein(known, name), known)).min();
        let problem = match near.filter(|(far, known)| *far <= known.chars().count().div_ceil(3)) {
            Some((_, known)) => problem.hint(format!("did you mean `/{known}`?")),
            None => problem.hint("commands are files such as `commands/fix.md` in the directory of `aye config path`"),
        };
        problem.hint("put `--` before a prompt that begins with a slash to send it unchanged")
    }
}

/// Returns the error for a command that is available only in the full-screen UI.
pub(crate) fn screen_only_error(text: &str) -> Problem {
    let name = command_name(text).unwrap_or_default();
    let problem = Problem::new(format!("`/{name}` is a command of the full-screen UI"));
    let equivalent = EQUIVALENTS.iter().find(|(names, _)| names.contains(&name)).map(|(_, equivalent)| *equivalent);
    problem.hint(equivalent.map_or_else(|| format!("start `aye` and type `/{name}`"), str::to_owned))
}

/// Returns the name of the command with which a prompt begins, without the slash.
fn command_name(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name = |letter: char| letter.is_alphanumeric() || "-_:".contains(letter);
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Returns the prompt to which a command expands.
fn expand(command: &CustomCommand, arguments: &str) -> Result<String, Problem> {
    let CustomCommand { name, source, .. } = command;
    if command.text.is_empty() {
        return Err(Problem::new(format!("the command `/{name}` is empty")).hint(format!("write a prompt in `{source}`")));
    }
    if command.needs_arguments() && arguments.is_empty() {
        let hint = command.argument_hint.as_deref().unwrap_or_default();
        return Err(Problem::new(format!("missing argument of `/{name}`")).hint(format!("usage: /{name} {hint}")));
    }
    Ok(command.expand(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> PromptCommands {
        let own = |name: &str, text: &str| CustomCommand::parse(name.to_owned(), format!("commands/{name}.md"), text).0;
        PromptCommands {
            own: vec![
                own("fix", "---\nargument-hint: <number>\n---\nFix issue $1."),
                own("git:commit", "Commit. $ARGUMENTS"),
                own("empty", ""),
                own("model", "Mine"),
            ],
            notices: vec!["`commands/fix.md`: x".to_owned(), "`commands/empty.md`: y".to_owned()],
            untrusted: None,
            servers: vec!["docs".to_owned()],
        }
    }

    #[test]
    fn commands_are_expanded_and_paths_and_other_text_are_prompts() {
        for (text, prompt) in [
            ("/fix 12", "Fix issue 12."),
            (" /fix 12 ", "Fix issue 12."),
            ("/git:commit now\nand push", "Commit. now\nand push"),
            ("fix /fix", "fix /fix"),
            ("/etc/hosts is what?", "/etc/hosts is what?"),
            ("/tmp", "/tmp"),
            ("/x.rs: why?", "/x.rs: why?"),
            ("/ is the root", "/ is the root"),
            ("/* a comment */", "/* a comment */"),
            ("/unknown\nin two lines", "/unknown\nin two lines"),
        ] {
            assert_eq!(commands().parse(text.to_owned()), Ok(PromptMeaning::Prompt(prompt.to_owned())), "{text}");
        }
        assert!(matches!(commands().parse("/init".to_owned()), Ok(PromptMeaning::Prompt(text)) if text.len() > 20));
    }

    #[test]
    fn unusable_commands_are_errors_with_a_hint() {
        for (text, parts) in [
            ("/fxi 12", &["unknown command `/fxi`", "did you mean `/fix`?", "put `--` before"][..]),
            ("/git:comit", &["did you mean `/git:commit`?"]),
            ("/reviw", &["did you mean `/review`?"]),
            ("/frobnicate", &["unknown command", "aye config path"]),
            ("/docs:explain x", &["prompts of MCP servers"]),
            ("/fix", &["missing argument of `/fix`", "usage: /fix <number>"]),
            ("/empty", &["is empty", "`commands/empty.md`"]),
        ] {
            let message = commands().parse(text.to_owned()).unwrap_err().text();
            for part in parts {
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }

    #[test]
    fn screen_commands_take_precedence_over_command_files() {
        for (text, part) in [
            ("/model x", "-m PROVIDER/NAME"),
            ("/review --staged", "run `aye review`"),
            ("/compact", "start `aye` and type `/compact`"),
            ("/q", "start `aye`"),
        ] {
            assert_eq!(commands().parse(text.to_owned()), Ok(PromptMeaning::OfScreen(text.to_owned())), "{text}");
            assert!(screen_only_error(text).text().contains(part), "{text}: {}", screen_only_error(text).text());
        }
    }

    #[test]
    fn only_notices_about_the_named_command_are_reported() {
        assert_eq!(commands().notices("/fix 12"), ["`commands/fix.md`: x"]);
        assert!(commands().notices("hello").is_empty());
    }

    #[test]
    fn every_equivalent_belongs_to_a_built_in_command() {
        for name in EQUIVALENTS.iter().flat_map(|(names, _)| names.iter()) {
            assert!(tui::is_built_in_command(name), "{name}");
        }
    }
}
