//! `aye policy show`: shows every entry of the policy in effect, with its file and line.

use super::args::ShowForm;
use super::paint::{OutputStyle, OutputTone};
use crate::config::trust::{Project, TrustStatus};
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, Trust};
use crate::host::policy_layers::Policy;
use crate::policy::{EffectiveSetting, Layer, Sandbox, Scope};
use crate::protocol::Mode;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Minimum width, in terminal cells, of a value that is followed by its origin, if the width of the output is limited.
const VALUE_CELLS: usize = 36;
/// Maximum width, in terminal cells, up to which values determine the column of the origins.
const ALIGNED_CELLS: usize = 72;

/// The policy in effect.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InForce {
    pub layers: Vec<LayerInForce>,
    pub mode: Mode,
    pub workspace: PathBuf,
    /// Status of the project's policy.
    pub project: String,
    pub entries: Vec<EffectiveSetting>,
    #[serde(skip)]
    pub home: PathBuf,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LayerInForce {
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<jiff::Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

pub(crate) fn run(app: &AppContext, common: &Common, form: ShowForm) -> Result<Exit, CliError> {
    let policy = super::load_policy(app, common)?;
    let mut layers: Vec<Layer> = policy.layers.iter().flat_map(|layer| [Some(layer.clone()), layer.base()]).flatten().collect();
    layers.sort_by_key(|layer| layer.scope);
    let in_force = InForce {
        layers: layers.iter().map(LayerInForce::from_layer).collect(),
        mode: app.mode,
        workspace: app.workspace.clone(),
        project: project(app, common, &policy),
        entries: app.enforcer(&policy, Sandbox::Absent, app.mode).entries(),
        home: app.home.clone(),
    };
    match form {
        ShowForm::Json => print_json(&in_force),
        ShowForm::Toml => print_text(&in_force.as_toml()),
        ShowForm::Table => print_text(&in_force.as_text(&OutputStyle::for_stdout(common.color), jiff::Timestamp::now())),
    }
    Ok(Exit::Completed)
}

fn project(app: &AppContext, common: &Common, policy: &Policy) -> String {
    let trusted = match Project::examine(&app.workspace).trust_status(&app.directories.config) {
        _ if common.trust == Trust::ForThisRun => "trusted for this run",
        TrustStatus::Trusted(_) => "trusted",
        TrustStatus::Changed(_) => "no longer trusted, because its configuration has changed",
        TrustStatus::NeverAsked => "not trusted",
    };
    let own = app.workspace.join(".aye/policy.toml").symlink_metadata().is_ok();
    let policy = match (policy.layers.iter().any(|layer| layer.scope == Scope::Project), own) {
        (true, _) => ", its policy applies",
        (false, true) => ", its policy is ignored",
        (false, false) => ", it has no policy",
    };
    format!("{trusted}{policy}")
}

impl LayerInForce {
    pub(crate) fn from_layer(layer: &Layer) -> Self {
        Self {
            scope: layer.scope.rule(0).split(':').next().unwrap_or_default().to_owned(),
            file: layer.file.clone(),
            bundle_version: layer.bundle.version.clone(),
            expires_at: layer.bundle.expires_at,
            session_id: layer.session_id().map(str::to_owned),
        }
    }
}

impl InForce {
    /// Formats a path for display, as in `~/.config/aye/policy.toml`.
    fn display_path(&self, path: &Path) -> String {
        crate::text::reveal(&crate::text::abbreviate_home(path, &self.home)).into_owned()
    }

    /// Groups the entries by section: general entries first, then models, tools and capabilities, and finally all other
    /// sections. Tests are omitted.
    fn sections(&self) -> Vec<(&str, Vec<&EffectiveSetting>)> {
        let rank = |section: &str| match section {
            "" => 0,
            "llm" => 1,
            "tools" => 2,
            section if section.starts_with("capabilities") => 3,
            _ => 4,
        };
        let mut entries: Vec<&EffectiveSetting> =
            self.entries.iter().filter(|entry| !(entry.section.is_empty() && entry.key == "tests")).collect();
        entries.sort_by_key(|entry| (rank(&entry.section), &entry.section, entry.key == "rules"));
        let mut sections: Vec<(&str, Vec<&EffectiveSetting>)> = Vec::new();
        for entry in entries {
            match sections.last_mut() {
                Some((section, entries)) if *section == entry.section => entries.push(entry),
                _ => sections.push((&entry.section, vec![entry])),
            }
        }
        sections
    }

    fn origin(&self, entry: &EffectiveSetting) -> String {
        entry.file.as_ref().map_or_else(|| entry.origin.clone(), |file| format!("{}:{}", self.display_path(file), entry.line))
    }

    pub(crate) fn as_text(&self, paint: &OutputStyle, now: jiff::Timestamp) -> String {
        let mut out = self.head(paint, now);
        let origins = self.entries.iter().map(|entry| crate::text::width(&self.origin(entry))).max().unwrap_or_default();
        let widest = self.entries.iter().map(|entry| crate::text::width(&format_entry(entry)));
        let widest = widest.filter(|cells| *cells <= ALIGNED_CELLS).max().unwrap_or_default();
        let beside = paint.width > origins + 4 + VALUE_CELLS;
        let cells = if beside { widest.min(paint.width.saturating_sub(origins + 4)) } else { paint.width.saturating_sub(2) };
        for (section, entries) in self.sections() {
            out.push('\n');
            if !section.is_empty() {
                let _ = writeln!(out, "{}", paint.tone(OutputTone::Strong, &crate::text::reveal(&format!("[{section}]"))));
            }
            for entry in entries {
                self.row(entry, cells, beside, paint, &mut out);
            }
        }
        out
    }

    fn head(&self, paint: &OutputStyle, now: jiff::Timestamp) -> String {
        let mut out = String::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let label = if at == 0 { "layers" } else { "" };
            let file = layer.file.as_ref().map_or_else(|| "no file".to_owned(), |file| self.display_path(file));
            let version = layer.bundle_version.as_ref().map(|version| format!("version {version}"));
            let expires = layer.expires_at.map(|end| {
                let word = if end <= now { "EXPIRED" } else { "expires" };
                format!("{word} {end}")
            });
            let session = layer.session_id.as_ref().map(|id| format!("for the session {id} only"));
            let more: Vec<String> = [Some(file), version, expires, session].into_iter().flatten().collect();
            let row = format!("{label:10}{:10}{}", layer.scope, more.join(", "));
            let _ = writeln!(out, "{}", crate::text::reveal(&row));
        }
        for (label, value) in [
            ("mode", self.mode.as_str().to_owned()),
            ("workspace", self.display_path(&self.workspace)),
            ("project", self.project.clone()),
        ] {
            let _ = writeln!(out, "{label:10}{}", crate::text::reveal(&value));
        }
        out.push_str(&paint.tone(OutputTone::Quiet, "the strictest entry wins; deny before ask before allow"));
        out.push('\n');
        out
    }

    fn row(&self, entry: &EffectiveSetting, cells: usize, beside: bool, paint: &OutputStyle, out: &mut String) {
        let text = format_entry(entry);
        let endless = paint.width > 10_000;
        let mut rows = if endless {
            vec![crate::text::reveal(&text).into_owned()]
        } else {
            paint.code(&text, paint.width.saturating_sub(cells))
        };
        let origin = paint.tone(OutputTone::Quiet, &self.origin(entry));
        let first = rows.remove(0);
        if beside {
            let _ = writeln!(
                out,
                "  {}  {origin}",
                OutputStyle::cell(&first, cells.max(if endless { crate::text::width(&first) } else { 0 }))
            );
        } else {
            let _ = writeln!(out, "  {first}");
        }
        for row in rows {
            let _ = writeln!(out, "    {row}");
        }
        if !beside {
            let _ = writeln!(out, "    {origin}");
        }
        if let Some(note) = &entry.note {
            let _ = writeln!(out, "    {}", paint.tone(OutputTone::Careful, &format!("↳ {note}")));
        }
    }

    /// Formats all layers as a single policy. Tables, and lists of blocked items, are combined. For any other key, the
    /// value in effect is used, and other values are added as comments.
    pub(crate) fn as_toml(&self) -> String {
        let mut out = String::new();
        for layer in &self.layers {
            let file = layer
                .file
                .as_ref()
                .map_or_else(String::new, |file| format!(" {}", crate::text::reveal(&file.display().to_string())));
            let _ = writeln!(out, "# layer {}{file}", layer.scope);
        }
        let _ = writeln!(out, "# mode {}, project {}", self.mode.as_str(), self.project);
        for (section, entries) in self.sections() {
            out.push('\n');
            if !section.is_empty() {
                let _ = writeln!(out, "[{section}]");
            }
            let mut rest = entries.as_slice();
            while let Some(first) = rest.first() {
                let (same, others) = rest.split_at(rest.iter().take_while(|entry| entry.key == first.key).count());
                self.toml_key(same, &mut out);
                rest = others;
            }
        }
        out
    }

    fn toml_key(&self, same: &[&EffectiveSetting], out: &mut String) {
        let comment = |entry: &EffectiveSetting| {
            let note = entry.note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
            crate::text::reveal(&format!("# {}{note}", self.origin(entry))).replace('\n', " ")
        };
        let Some(first) = same.first() else { return };
        if first.value.starts_with('{') && first.key != "limits" {
            let _ = writeln!(out, "{} = [", first.key);
            for entry in same {
                let _ = writeln!(out, "  {},  {}", entry.value, comment(entry));
            }
            out.push_str("]\n");
            return;
        }
        // An item is blocked if any layer blocks it.
        if same.len() > 1 && (first.key.starts_with("blocked_") || first.key == "disabled") {
            let _ = writeln!(out, "{} = [", first.key);
            for entry in same {
                let items = entry.value.trim_start_matches('[').trim_end_matches(']');
                let _ = writeln!(out, "  {items}{}  {}", if items.is_empty() { "" } else { "," }, comment(entry));
            }
            out.push_str("]\n");
            return;
        }
        let holds = same.iter().position(|entry| entry.note.as_ref().is_none_or(|note| note == "tightens")).unwrap_or(0);
        for (at, entry) in same.iter().enumerate() {
            let off = if at == holds { "" } else { "# " };
            let _ = writeln!(out, "{off}{} = {}  {}", entry.key, entry.value, comment(entry));
        }
    }
}

/// Formats an entry as `key = value`. A rule is shown as its decision, condition and reason, without its examples.
fn format_entry(entry: &EffectiveSetting) -> String {
    let rule = (entry.key == "rules").then(|| format!("rule = {}", entry.value).parse::<toml::Table>().ok()).flatten();
    let rule = rule.and_then(|table| table.get("rule")?.as_table().cloned());
    let Some(rule) = rule else { return format!("{} = {}", entry.key, entry.value) };
    let decision = rule.get("decision").and_then(toml::Value::as_str).unwrap_or_default();
    let subject =
        ["command", "paths", "tools"].into_iter().find_map(|key| rule.get(key)).map(ToString::to_string).unwrap_or_default();
    let more = ["exact", "args", "sandboxed", "hosts", "fingerprint", "expires_at"]
        .into_iter()
        .filter_map(|key| Some(format!("{key} = {}", rule.get(key)?)));
    let reason = rule.get("reason").and_then(toml::Value::as_str).map(str::to_owned);
    let more: Vec<String> = more.chain(reason).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
    format!("{decision:5} {subject}{more}")
}
