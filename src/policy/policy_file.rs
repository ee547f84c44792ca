//! Parses policy files and checks that their rules are consistent with the examples.

use super::bundle::{AgentLimits, Bundle, BundleEntry, BundleError, ModelLimits};
use super::rule_examples::check_examples;
use std::sync::LazyLock;

const DEFAULT: &str = include_str!("../../assets/policy/default.toml");

impl Bundle {
    /// Parses a bundle and checks its examples. `name` is the file name shown in errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, BundleError> {
        let bundle = Self::parse_unchecked(text, name)?;
        check_examples(&bundle, name)?;
        Ok(bundle)
    }

    /// Parses a file of saved rules. Apart from its version keys, it may contain only rules and `readable_paths`.
    pub fn parse_rules(text: &str, name: &str) -> Result<Self, BundleError> {
        let bundle = Self::parse(text, name)?;
        let rules = |stated: &&BundleEntry| match stated.section.as_str() {
            "" => matches!(stated.key.as_str(), "schema_version" | "bundle_version"),
            "capabilities.\"Shell.Exec\"" if stated.key == "readable_paths" => true,
            section => section.starts_with("capabilities.") && stated.key == "rules",
        };
        match bundle.stated.iter().find(|stated| !rules(stated)) {
            None => Ok(bundle),
            Some(stated) => {
                let message = format!("`{}` is not allowed here: this file may contain only rules", stated.key);
                Err(BundleError { name: name.to_owned(), line: Some(stated.line), message })
            }
        }
    }

    /// Parses the content of a policy file, ignoring a byte order mark. Invalid UTF-8 is an error.
    pub fn parse_bytes(bytes: &[u8], name: &str) -> Result<Self, BundleError> {
        Self::parse(decode_text(bytes, name)?, name)
    }

    /// Parses the content of a file of saved rules.
    pub fn parse_rules_bytes(bytes: &[u8], name: &str) -> Result<Self, BundleError> {
        Self::parse_rules(decode_text(bytes, name)?, name)
    }

    /// Returns the built-in policy, which applies if there is no policy file.
    pub fn built_in() -> Result<Self, BundleError> {
        static BUILT_IN: LazyLock<Result<Bundle, BundleError>> = LazyLock::new(|| Bundle::parse(DEFAULT, "the built-in policy"));
        BUILT_IN.clone()
    }

    /// Returns the part of the built-in policy that applies to a bundle that extends it, which consists of the
    /// capabilities and settings that the bundle does not set. Returns `None` if the bundle extends nothing.
    pub fn inherited_sections(&self) -> Option<Self> {
        let mut base = self.extends.then(Self::built_in)?.ok()?;
        for capability in &self.capabilities.granted {
            match capability.as_str() {
                "File.Read" => base.capabilities.read = None,
                "File.Write" => base.capabilities.write = None,
                "File.Delete" => base.capabilities.delete = None,
                "Shell.Exec" => base.capabilities.shell = None,
                "Network.Http" => base.capabilities.http = None,
                "Network.Search" => base.capabilities.search = None,
                "Workspace.Upload" => base.capabilities.upload = None,
                "Mcp.Invoke" => base.capabilities.mcp = None,
                "BackendTool.Invoke" => base.capabilities.backend = None,
                "Tool.Custom" => base.capabilities.custom.clear(),
                _ => {}
            }
        }
        base.capabilities.granted.retain(|capability| !self.capabilities.granted.contains(capability));
        base.approval_rules.retain(|name, _| !self.approval_rules.contains_key(name));
        let names = |section: &str| self.stated.iter().any(|entry| entry.section == section);
        if names("llm") {
            base.llm = ModelLimits::default();
        }
        if names("agents") {
            base.agents = AgentLimits::default();
        }
        if self.approval_timeout_seconds.is_some() {
            base.approval_timeout_seconds = None;
        }
        if self.service_risk.is_some() {
            base.service_risk = None;
        }
        base.stated.retain(|entry| match entry.section.as_str() {
            "" => entry.key == "bundle_version",
            section if section.starts_with("capabilities.") => {
                base.capabilities.granted.iter().any(|granted| section == format!("capabilities.\"{granted}\""))
            }
            section => !names(section),
        });
        base.tests.clear();
        Some(base)
    }

    /// Returns the lines of the built-in policy that define a capability, including comments.
    pub fn built_in_section(capability: &str) -> Option<String> {
        let is_header = |line: &str| line.starts_with('[');
        let is_about = |line: &str| line.trim_start_matches('[').starts_with(&format!("capabilities.\"{capability}\""));
        // Paragraphs are separated by blank lines. The first paragraph about a capability contains its header.
        let paragraphs =
            DEFAULT.split("\n\n").filter(|paragraph| paragraph.lines().find(|line| is_header(line)).is_some_and(is_about));
        let section = paragraphs.map(str::trim_end).collect::<Vec<_>>().join("\n\n");
        (!section.is_empty()).then(|| section + "\n")
    }
}

fn decode_text<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, BundleError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            let message = format!("byte 0x{:02x} is not valid UTF-8; expected a TOML file", bytes[error.valid_up_to()]);
            Err(BundleError { name: name.to_owned(), line: Some(line), message })
        }
    }
}
