//! Feature flags supported by aye. A flag can only disable a feature.

use serde_json::Value;
use std::collections::BTreeMap;

/// Supported flags, each with the tools that it disables. Any other flags are recorded and displayed but have no
/// effect.
const KNOWN: [(&str, &str); 4] =
    [("agents", "Agent"), ("httpRequests", "HttpRequest"), ("mcpServers", "Mcp.*"), ("webSearch", "WebSearch")];

/// Returns the tools that are disabled because a supported flag is `false`.
pub(super) fn disabled_tools(flags: &BTreeMap<String, Value>) -> Vec<&'static str> {
    let is_off = |name: &str| flags.get(name) == Some(&Value::Bool(false));
    KNOWN.iter().filter(|(name, _)| is_off(name)).map(|(_, tools)| *tools).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_flags_switch_tools_off_and_other_flags_and_values_have_no_effect() {
        let flags = json!({"webSearch": false, "mcpServers": true, "agents": "false", "httpRequests": 0, "other": false});
        let flags = serde_json::from_value(flags).unwrap();
        assert_eq!(disabled_tools(&flags), ["WebSearch"]);
    }
}
