//! Servers of models on this machine, as far as the settings speak of them.

use super::file::Value;
use super::{Settings, schema};

const PORTS: [&str; 2] = ["llm", "local_ports"];

impl Settings {
    /// Where such servers are looked for.
    pub fn local_ports(&self) -> Vec<u16> {
        let parse = |port: &str| port.trim().parse().ok();
        if let Some(Value::List(ports)) = self.entry(&PORTS).map(|entry| &entry.value) {
            return ports.iter().filter_map(|port| parse(port)).collect();
        }
        let default = schema::find(&PORTS.map(str::to_owned)).map_or("", |key| key.default);
        default.trim_matches(['[', ']']).split(',').filter_map(parse).collect()
    }

    /// Whether it is set where the provider `local` is; then nobody needs to look.
    pub fn says_where_local_is(&self) -> bool {
        self.text(&["providers", "local", "base_url"]).is_some()
    }

    pub fn has_default_model(&self) -> bool {
        self.default_model_name().is_some()
    }

    /// The same without `[model] default`.
    pub fn without_default_model(&self) -> Self {
        let mut settings = self.clone();
        settings.values.remove(["model", "default"].map(str::to_owned).as_slice());
        settings
    }

    pub fn default_model_name(&self) -> Option<&str> {
        self.text(&["model", "default"])
    }
}
