//! Installed plugins and their files. Whenever a file is read, it is compared with its pinned hash.

use super::manifest::{Part, manifest_fields};
use crate::config::servers::{ServerDefinition, ServerFile, parse_plugin_servers};
use crate::config::{Environment, FilePin, PluginPin};
use crate::hooks::{HookFile, HookOrigin, MAX_FILE_BYTES, read_claude_file};
use crate::host::command_file::{command_name, parse_command};
use crate::protocol::{CustomCommand, HookEvent};
use crate::skills::{Candidate, CandidateContents, Origin, PinnedFile, PluginSkills, SKILL_FILE};
use crate::subagents::{AgentFile, AgentOrigin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a `SKILL.md`, an agent file or a tool manifest, in bytes.
const DEFINITION_BYTES: u64 = 256 << 10;
/// Maximum size of a slash command file in bytes.
const COMMAND_BYTES: u64 = 1 << 20;
/// Maximum size of a file to hash, in bytes.
const FILE_BYTES: u64 = 16 << 20;
const SKILLS: &str = "skills/";
const AGENTS: &str = "agents/";
const COMMANDS: &str = "commands/";
const TOOLS: &str = "tools/";
/// Files that define hooks and MCP servers by default. A manifest can specify additional ones.
const HOOKS: &str = "hooks/hooks.json";
const SERVERS: &str = ".mcp.json";

/// Plugins of a user.
#[derive(Debug, Default)]
pub(crate) struct Plugins {
    /// Plugins, in order of name.
    pub plugins: Vec<Plugin>,
    /// Messages about plugins that cannot be read.
    pub problems: Vec<String>,
}

/// A plugin and the folder that contains its files.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub pin: PluginPin,
    /// Path of the folder, without symlinks.
    pub root: PathBuf,
}

/// A plugin's slash command and notices about its file, or the reason why the file is not used.
pub(crate) type PluginCommand = Result<(CustomCommand, Vec<String>), String>;

/// Path of a tool manifest, and its content or the reason why it is not used.
pub(crate) type ToolManifest = (PathBuf, Result<Vec<u8>, String>);

impl Plugin {
    pub(crate) fn name(&self) -> &str {
        &self.pin.name
    }

    /// Returns the path of a file for display, as in `plugin:demo/skills/pdf/SKILL.md`.
    pub(crate) fn shown(&self, path: &str) -> String {
        format!("plugin:{}/{path}", self.pin.name)
    }

    /// Returns the plugin's skills with their pinned files. Reads every `SKILL.md`, but no other files.
    pub(crate) fn skills(&self) -> PluginSkills {
        let candidate = |folder: String| {
            let name = folder.rsplit('/').next().unwrap_or_default();
            let prefix = format!("{folder}/");
            let pin = |(path, file): (&String, &FilePin)| {
                let path = path.strip_prefix(&prefix)?.to_owned();
                Some(PinnedFile { path, bytes: file.bytes, hash: file.hash.clone() })
            };
            let contents = match self.read(&format!("{prefix}{SKILL_FILE}"), DEFINITION_BYTES) {
                Ok(text) => {
                    let files = self.pin.files.iter().filter_map(pin).collect();
                    CandidateContents::Read { text, files: Some(files), left_out: Vec::new() }
                }
                Err(why) => CandidateContents::Closed { why },
            };
            let (real, shown) = (self.root.join(&folder), self.shown(&folder));
            Candidate { name: name.to_owned(), real, shown, origin: Origin::Plugin, contents }
        };
        let candidates = self.skill_folders().into_iter().map(candidate).collect();
        PluginSkills { plugin: self.pin.name.clone(), root: self.root.clone(), candidates }
    }

    /// Returns the folders of the plugin's skills: those in `skills`, and those to which the manifest refers.
    fn skill_folders(&self) -> Vec<String> {
        let mut folders: Vec<String> = Vec::new();
        for parent in std::iter::once(SKILLS.to_owned()).chain(self.manifest_paths("skills")) {
            let parent = parent.trim_end_matches('/');
            let within = if parent.is_empty() { String::new() } else { format!("{parent}/") };
            for path in self.pin.files.keys().filter_map(|path| path.strip_prefix(&within)) {
                let folder = match path.split_once('/') {
                    Some((name, SKILL_FILE)) => format!("{within}{name}"),
                    None if path == SKILL_FILE && !parent.is_empty() => parent.to_owned(),
                    Some(_) | None => continue,
                };
                if !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
        }
        folders
    }

    /// Returns the paths that the manifest lists under a key, relative to the plugin's folder.
    fn manifest_paths(&self, key: &str) -> Vec<String> {
        let manifest = manifest_fields(&|path| self.pin.files.contains_key(path).then(|| self.read(path, DEFINITION_BYTES)));
        let parts = match manifest {
            Some((_, Ok(fields))) => fields.get(key).map(Part::read).unwrap_or_default(),
            Some((_, Err(_))) | None => Vec::new(),
        };
        let path = |part| match part {
            Part::File(path) if path == "." => Some(String::new()),
            Part::File(path) => Some(path.trim_end_matches('/').to_owned()),
            Part::Inline(_) | Part::Invalid => None,
        };
        parts.into_iter().filter_map(path).collect()
    }

    /// Returns the plugin's agent files: those in `agents`, and those to which the manifest refers.
    pub(crate) fn agents(&self) -> Vec<AgentFile> {
        let file = |path: &String| AgentFile {
            shown: self.shown(path),
            content: self.read(path, DEFINITION_BYTES),
            origin: AgentOrigin::Plugin,
        };
        let others = self.manifest_paths("agents");
        let is_other = |path: &&String| {
            let is_within = |other: &String| {
                path.as_str() == other || path.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            !path.starts_with(AGENTS)
                && Path::new(path.as_str()).extension().is_some_and(|extension| extension == "md")
                && others.iter().any(is_within)
        };
        self.files_with_extension(AGENTS, "md").chain(self.pin.files.keys().filter(is_other)).map(file).collect()
    }

    /// Returns the plugin's slash commands.
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

    /// Returns the plugin's tool manifests.
    pub(crate) fn tools(&self) -> Vec<ToolManifest> {
        let is_direct = |path: &&String| !path[TOOLS.len()..].contains('/');
        let manifest = |path: &String| (self.root.join(path), self.read(path, DEFINITION_BYTES));
        self.files_with_extension(TOOLS, "toml").filter(is_direct).map(manifest).collect()
    }

    /// Returns the plugin's hooks. If a hook file has changed since the plugin was added, every call needs approval,
    /// because the file might have denied the call.
    pub(crate) fn hooks(&self) -> Vec<HookFile> {
        let read = |(file, content): (String, Result<Vec<u8>, String>)| match content {
            Ok(bytes) => read_claude_file(&with_hooks_key(bytes), &file, HookOrigin::Plugin),
            Err(why) => HookFile::unreadable(&file, HookOrigin::Plugin, why),
        };
        self.parts("hooks", HOOKS).into_iter().map(read).collect()
    }

    /// Returns whether `shown`, the display path of a hook file, belongs to this plugin.
    pub(crate) fn owns(&self, shown: &str) -> bool {
        shown.strip_prefix(&self.shown("")).is_some()
    }

    /// Returns the plugin's MCP servers. `withheld` lists environment variables that are not passed to any server.
    pub(crate) fn servers(&self, environment: &Environment, withheld: &[String]) -> ServerFile {
        let (servers, problems) = self.servers_with_entries(environment, withheld);
        ServerFile { servers: servers.into_iter().map(|(server, _)| server).collect(), problems, ..ServerFile::default() }
    }

    /// Returns the plugin's MCP servers, each with its entry, and messages about entries that are ignored. If several
    /// servers have the same name, only the first is used.
    pub(super) fn servers_with_entries(
        &self,
        environment: &Environment,
        withheld: &[String],
    ) -> (Vec<(ServerDefinition, serde_json::Value)>, Vec<String>) {
        let (mut all, mut problems) = (Vec::<(ServerDefinition, serde_json::Value)>::new(), Vec::new());
        let prefix = format!("{}:", self.name());
        for (file, content) in self.parts("mcpServers", SERVERS) {
            let bytes = match content {
                Ok(bytes) => bytes,
                Err(why) => {
                    problems.push(format!("ignored the MCP servers in `{file}`: {why}"));
                    continue;
                }
            };
            let found = parse_plugin_servers(&bytes, (self.name(), &file, &self.root), environment, withheld);
            problems.extend(found.problems);
            let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let entries = document.get("mcpServers").unwrap_or(&document);
            for server in found.servers {
                let name = server.name.strip_prefix(&prefix).unwrap_or(&server.name);
                if let Some((known, _)) = all.iter().find(|(known, _)| known.name.eq_ignore_ascii_case(&server.name)) {
                    problems.push(format!(
                        "{}: ignored the MCP server `{name}`: {} has a server with the same name; rename one of them",
                        server.place, known.place
                    ));
                    continue;
                }
                let entry = entries.get(name).cloned().unwrap_or_default();
                all.push((server, entry));
            }
        }
        (all, problems)
    }

    /// Returns the documents that define a part of the plugin, each with its display name. These are the default file
    /// and the documents listed under `key` in the manifest.
    fn parts(&self, key: &str, usual: &str) -> Vec<(String, Result<Vec<u8>, String>)> {
        let manifest = manifest_fields(&|path| self.pin.files.contains_key(path).then(|| self.read(path, DEFINITION_BYTES)));
        let mut paths: Vec<String> = self.pin.files.contains_key(usual).then(|| usual.to_owned()).into_iter().collect();
        let mut documents = Vec::new();
        match manifest {
            None => {}
            Some((file, Ok(fields))) => {
                for part in fields.get(key).map(Part::read).unwrap_or_default() {
                    match part {
                        Part::File(path) if !paths.contains(&path) => paths.push(path),
                        Part::File(_) => {}
                        Part::Inline(document) => documents.push((self.shown(file), Ok(document))),
                        Part::Invalid => documents.push((self.shown(file), Err(format!("`{key}` is not a path or an object")))),
                    }
                }
            }
            Some((file, Err(why))) => documents.push((self.shown(file), Err(why))),
        }
        let files = paths.into_iter().map(|path| (self.shown(&path), self.read(&path, MAX_FILE_BYTES as u64)));
        files.chain(documents).collect()
    }

    /// Returns the hashes of the plugin's files, by path.
    pub(crate) fn hashes(&self) -> Arc<BTreeMap<String, String>> {
        Arc::new(self.pin.files.iter().map(|(path, file)| (path.clone(), file.hash.clone())).collect())
    }

    /// Returns the first file that has been added or changed since the plugin was added. Reads all files.
    pub(crate) fn change(&self) -> Option<String> {
        let changed =
            self.pin.files.keys().find_map(|path| self.read(path, FILE_BYTES).err().map(|why| format!("`{path}`: {why}")));
        changed.or_else(|| self.new_file(Path::new("")))
    }

    /// Returns the first file in a folder that did not exist when the plugin was added.
    fn new_file(&self, folder: &Path) -> Option<String> {
        let entries = std::fs::read_dir(self.root.join(folder)).ok()?;
        entries.filter_map(Result::ok).find_map(|entry| {
            let path = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                return self.new_file(&path);
            }
            let is_known = path.to_str().is_some_and(|path| self.pin.files.contains_key(path));
            (!is_known).then(|| format!("`{}` is new", path.display()))
        })
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if it has changed since the plugin was added.
    pub(crate) fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
        let Some(pin) = self.pin.files.get(path) else { return Err("the file is not part of the plugin".to_owned()) };
        let content = crate::sys::file::read(&self.root.join(path), max_bytes).map_err(|error| error.to_string())?;
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

/// Wraps the content of a hook file in a `hooks` key, which the file may omit.
fn with_hooks_key(bytes: Vec<u8>) -> Vec<u8> {
    let is_bare = |fields: &serde_json::Map<String, serde_json::Value>| {
        !fields.contains_key("hooks") && fields.keys().any(|key| HookEvent::from_name(key).is_some())
    };
    match serde_json::from_slice(&bytes) {
        Ok(serde_json::Value::Object(fields)) if is_bare(&fields) => {
            serde_json::json!({ "hooks": fields }).to_string().into_bytes()
        }
        _ => bytes,
    }
}
