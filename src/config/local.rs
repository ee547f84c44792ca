//! Settings of local model servers.

use super::file::Value;
use super::{Settings, schema};

const PORTS: [&str; 2] = ["llm", "local_ports"];

impl Settings {
    /// Returns the ports on which to look for local model servers.
    pub fn local_ports(&self) -> Vec<u16> {
        let parse = |port: &str| port.trim().parse().ok();
        if let Some(Value::List(ports)) = self.entry(&PORTS).map(|entry| &entry.value) {
            return ports.iter().filter_map(|port| parse(port)).collect();
        }
        let default = schema::find(&PORTS.map(str::to_owned)).map_or("", |key| key.default);
        default.trim_matches(['[', ']']).split(',').filter_map(parse).collect()
    }

    /// Returns true if the settings or the environment set the URL of the provider `local`, so that no search is
    /// needed.
    pub fn says_where_local_is(&self) -> bool {
        self.text(&["providers", "local", "base_url"]).is_some()
    }

    pub fn has_default_model(&self) -> bool {
        self.default_model_name().is_some()
    }

    /// Returns the settings without `[model] default`.
    pub fn without_default_model(&self) -> Self {
        let mut settings = self.clone();
        settings.values.remove(["model", "default"].map(str::to_owned).as_slice());
        settings
    }

    pub fn default_model_name(&self) -> Option<&str> {
        self.text(&["model", "default"])
    }
}
