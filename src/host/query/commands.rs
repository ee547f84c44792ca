//! Custom slash commands of the user, of a trusted project and of plugins. They are defined by Markdown files and
//! skills.

use crate::host::command_file::{command_name, parse_command};
use crate::host::plugins::PluginStore;
use crate::host::project::ProjectConfig;
use crate::host::skills::Skills;
use crate::protocol::CustomCommand;
use crate::skills::Skill;
use crate::tui;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a command file, in bytes.
const FILE_BYTES: u64 = 1 << 20;
const MAX_FILES: usize = 500;
/// Maximum depth of folders that are searched for commands.
const DEPTH: usize = 3;
const ENDING: &str = "md";

pub(crate) struct CustomCommands {
    own: PathBuf,
    /// Commands of the project, as they were when the user trusted it.
    project: Mutex<Vec<(CustomCommand, Vec<String>)>>,
    /// Skills of the user, and trusted skills of the project.
    skills: Mutex<Skills>,
    plugins: PluginStore,
    /// Notices that have already been shown.
    reported: Mutex<HashSet<String>>,
}

impl CustomCommands {
    pub(crate) fn new(own: PathBuf, skills: Skills, plugins: PluginStore) -> Self {
        Self { own, project: Mutex::default(), skills: Mutex::new(skills), plugins, reported: Mutex::default() }
    }

    /// Adds a trusted project's command files and skills.
    pub(crate) fn trust(&self, project: &ProjectConfig) {
        let mut skills = self.skills.lock().unwrap_or_else(PoisonError::into_inner);
        *skills = skills.with_project(project);
        let files = project.commands().into_iter().map(|(path, bytes)| (path, bytes.to_vec())).collect();
        self.trust_files(project.root(), files);
    }

    fn trust_files(&self, root: &Path, files: Vec<(PathBuf, Vec<u8>)>) {
        let directory = root.join(".aye").join("commands");
        let read = files.into_iter().filter_map(|(path, bytes)| {
            let source = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            Some(parse_command(&command_name(path.strip_prefix(&directory).ok()?)?, source, &bytes))
        });
        *self.project.lock().unwrap_or_else(PoisonError::into_inner) = read.collect();
    }

    /// Returns the commands as they are now. If several commands have the same name, the user's command takes
    /// precedence over the project's, which takes precedence over a skill. A plugin's command whose name is already in
    /// use is renamed to `PLUGIN:NAME`.
    pub(crate) fn now(&self) -> (Vec<CustomCommand>, Vec<String>) {
        let (mut commands, mut notices) = (Vec::<CustomCommand>::new(), Vec::new());
        let mut files = Vec::new();
        collect(&self.own, 0, &mut files);
        for path in files {
            let Some(name) = path.strip_prefix(&self.own).ok().and_then(command_name) else { continue };
            let source = path.display().to_string();
            match read(&path) {
                Ok(bytes) => {
                    let (command, wrong) = parse_command(&name, source, &bytes);
                    commands.push(command);
                    notices.extend(wrong);
                }
                Err(why) => notices.push(format!("ignored the slash command `{source}`: {why}")),
            }
        }
        for (command, wrong) in self.project.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            notices.extend(wrong.iter().cloned());
            if let Some(own) = commands.iter().find(|own| own.name == command.name) {
                notices
                    .push(format!("ignored the slash command `{}`: your own `{}` has the same name", command.source, own.source));
            } else {
                commands.push(command.clone());
            }
        }
        self.add_skills(&mut commands, &mut notices);
        self.add_plugins(&mut commands, &mut notices);
        commands.sort_by(|one, two| one.name.cmp(&two.name));
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        notices.retain(|notice| reported.insert(notice.clone()));
        (commands, notices)
    }

    /// Adds the commands of enabled plugins.
    fn add_plugins(&self, commands: &mut Vec<CustomCommand>, notices: &mut Vec<String>) {
        for plugin in self.plugins.enabled().plugins {
            for command in plugin.commands() {
                let (mut command, wrong) = match command {
                    Ok(read) => read,
                    Err(why) => {
                        notices.push(why);
                        continue;
                    }
                };
                notices.extend(wrong);
                let is_taken = |name: &str| tui::is_built_in_command(name) || commands.iter().any(|known| known.name == name);
                if is_taken(&command.name) {
                    command.name = format!("{}:{}", plugin.name(), command.name);
                }
                if is_taken(&command.name) {
                    let CustomCommand { name, source, .. } = &command;
                    notices.push(format!("ignored the slash command `{source}`: `/{name}` is another command"));
                } else {
                    commands.push(command);
                }
            }
        }
    }

    /// Adds the skills that users can invoke.
    fn add_skills(&self, commands: &mut Vec<CustomCommand>, notices: &mut Vec<String>) {
        let skills = self.skills.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for command in skills.read().skills.iter().filter_map(Skill::command) {
            if tui::is_built_in_command(&command.name) {
                notices.push(format!(
                    "`/{}` is a built-in command; the skill `{}` is only for the model",
                    command.name, command.source
                ));
            } else if let Some(file) = commands.iter().find(|file| file.name == command.name) {
                notices.push(format!(
                    "`/{}` is the command in `{}`; the skill `{}` is only for the model",
                    command.name, file.source, command.source
                ));
            } else {
                commands.push(command);
            }
        }
    }
}

fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut entries: Vec<PathBuf> = entries.take(MAX_FILES * 2).filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        if files.len() >= MAX_FILES {
            return;
        }
        if path.extension().is_some_and(|ending| ending == ENDING) {
            files.push(path);
        } else if depth < DEPTH && path.is_dir() {
            collect(&path, depth + 1, files);
        }
    }
}

/// Reads a regular file. Other types of file are rejected, because reading them could block.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    let file = crate::sys::path::open_file(&real).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES { Err("larger than 1 MB".to_owned()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_after_their_files_and_problems_are_reported_once() {
        let (own, root) = (tempfile::TempDir::new().unwrap(), Path::new("/p"));
        std::fs::create_dir_all(own.path().join("git")).unwrap();
        for (path, text) in
            [("fix.md", "Fix it"), ("git/commit.md", "---\nmodel: x\n---\nCommit"), ("a b.md", "x"), ("notes.txt", "x")]
        {
            std::fs::write(own.path().join(path), text).unwrap();
        }
        let commands = CustomCommands::new(own.path().to_owned(), Skills::default(), PluginStore::default());
        let file = |name: &str, text: &str| (root.join(".aye/commands").join(name), text.as_bytes().to_vec());
        let names = |commands: &CustomCommands| commands.now().0.into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names(&commands), ["fix", "git:commit"]);
        commands.trust_files(root, vec![file("fix.md", "Of the project"), file("lint.md", "Lint")]);
        let (now, notices) = commands.now();
        assert_eq!(now.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["fix", "git:commit", "lint"]);
        assert_eq!((now[0].text.as_str(), now[2].source.as_str()), ("Fix it", ".aye/commands/lint.md"));
        assert!(notices[0].contains("your own"), "{notices:?}");
        assert!(commands.now().1.is_empty());
        std::fs::write(own.path().join("new.md"), "New").unwrap();
        assert!(names(&commands).contains(&"new".to_owned()));
    }
}
