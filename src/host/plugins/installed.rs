//! Installed plugins: their files, each compared with its pin when it is read.

use crate::config::{FilePin, PluginPin};
use crate::host::command_file::{command_name, parse_command};
use crate::protocol::CustomCommand;
use crate::skills::{Candidate, Contents, Origin, PinnedFile, PluginSkills, SKILL_FILE};
use crate::subagents::{AgentFile, AgentOrigin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum bytes of a `SKILL.md`, of the file of an agent and of a manifest of a tool.
const DEFINITION_BYTES: u64 = 256 << 10;
/// Maximum bytes of the file of a slash command.
const COMMAND_BYTES: u64 = 1 << 20;
/// Maximum bytes of a file that is hashed.
const FILE_BYTES: u64 = 16 << 20;
const SKILLS: &str = "skills/";
const AGENTS: &str = "agents/";
const COMMANDS: &str = "commands/";
const TOOLS: &str = "tools/";

/// The plugins of a user.
#[derive(Debug, Default)]
pub(crate) struct Plugins {
    /// Plugins by name.
    pub plugins: Vec<Plugin>,
    /// Sentences about plugins that cannot be read.
    pub problems: Vec<String>,
}

/// A plugin, and the folder of its files.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub pin: PluginPin,
    /// Folder without links.
    pub root: PathBuf,
}

/// A slash command of a plugin, with notices about its file; or the reason why the file is not used.
pub(crate) type PluginCommand = Result<(CustomCommand, Vec<String>), String>;

/// The manifest of a tool: its path and its content, or the reason why it is not used.
pub(crate) type ToolManifest = (PathBuf, Result<Vec<u8>, String>);

impl Plugin {
    pub(crate) fn name(&self) -> &str {
        &self.pin.name
    }

    /// Returns the path of a file as users know it: `plugin:demo/skills/pdf/SKILL.md`.
    pub(crate) fn shown(&self, path: &str) -> String {
        format!("plugin:{}/{path}", self.pin.name)
    }

    /// Returns the skills, with the files that were added. Reads every `SKILL.md`, and no other file.
    pub(crate) fn skills(&self) -> PluginSkills {
        let names = self.files_in(SKILLS).filter_map(|path| {
            let (name, rest) = path.strip_prefix(SKILLS)?.split_once('/')?;
            (rest == SKILL_FILE).then_some(name)
        });
        let candidate = |name: &str| {
            let folder = format!("{SKILLS}{name}");
            let prefix = format!("{folder}/");
            let pin = |(path, file): (&String, &FilePin)| {
                let path = path.strip_prefix(&prefix)?.to_owned();
                Some(PinnedFile { path, bytes: file.bytes, hash: file.hash.clone() })
            };
            let contents = match self.read(&format!("{prefix}{SKILL_FILE}"), DEFINITION_BYTES) {
                Ok(text) => {
                    let files = self.pin.files.iter().filter_map(pin).collect();
                    Contents::Read { text, files: Some(files), left_out: Vec::new() }
                }
                Err(why) => Contents::Closed { why },
            };
            let (real, shown) = (self.root.join(&folder), self.shown(&folder));
            Candidate { name: name.to_owned(), real, shown, origin: Origin::Plugin, contents }
        };
        PluginSkills { plugin: self.pin.name.clone(), root: self.root.clone(), candidates: names.map(candidate).collect() }
    }

    /// Returns the files of the agents.
    pub(crate) fn agents(&self) -> Vec<AgentFile> {
        let file = |path: &String| AgentFile {
            shown: self.shown(path),
            content: self.read(path, DEFINITION_BYTES),
            origin: AgentOrigin::Plugin,
        };
        self.files_with_extension(AGENTS, "md").map(file).collect()
    }

    /// Returns the slash commands.
    pub(crate) fn commands(&self) -> Vec<PluginCommand> {
        let command = |path: &String| {
            let name = command_name(Path::new(path.strip_prefix(COMMANDS)?))?;
            let source = self.shown(path);
            let read = self.read(path, COMMAND_BYTES);
            let ignored = |why: String| format!("ignored the slash command `{}`: {why}", self.shown(path));
            Some(read.map(|bytes| parse_command(&name, source, &bytes)).map_err(ignored))
        };
        self.files_with_extension(COMMANDS, "md").filter_map(command).collect()
    }

    /// Returns the manifests of the tools.
    pub(crate) fn tools(&self) -> Vec<ToolManifest> {
        let is_direct = |path: &&String| !path[TOOLS.len()..].contains('/');
        let manifest = |path: &String| (self.root.join(path), self.read(path, DEFINITION_BYTES));
        self.files_with_extension(TOOLS, "toml").filter(is_direct).map(manifest).collect()
    }

    /// Returns the hashes of all files, by path.
    pub(crate) fn hashes(&self) -> Arc<BTreeMap<String, String>> {
        Arc::new(self.pin.files.iter().map(|(path, file)| (path.clone(), file.hash.clone())).collect())
    }

    /// Returns the first file that differs from its state when it was added. Reads all files.
    pub(crate) fn change(&self) -> Option<String> {
        self.pin.files.keys().find_map(|path| self.read(path, FILE_BYTES).err().map(|why| format!("`{path}`: {why}")))
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    /// The file cannot be read, or differs from what was added.
    pub(crate) fn read(&self, path: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
        let Some(pin) = self.pin.files.get(path) else { return Err("the file is not part of the plugin".to_owned()) };
        let content = crate::sys::file::read(&self.root.join(path), most_bytes).map_err(|error| error.to_string())?;
        if blake3::hash(&content).to_hex().as_str() == pin.hash {
            return Ok(content);
        }
        let name = &self.pin.name;
        Err(format!(
            "the file changed since you added the plugin; remove the plugin with `aye plugin remove {name}`, or add it again"
        ))
    }

    fn files_in(&self, folder: &'static str) -> impl Iterator<Item = &String> {
        self.pin.files.keys().filter(move |path| path.starts_with(folder))
    }

    fn files_with_extension(&self, folder: &'static str, extension: &'static str) -> impl Iterator<Item = &String> {
        let has_it = move |path: &&String| Path::new(path.as_str()).extension().is_some_and(|found| found == extension);
        self.files_in(folder).filter(has_it)
    }
}
