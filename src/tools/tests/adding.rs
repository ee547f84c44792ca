//! Example of how to add a tool, which takes one file, such as this one, and one line in the registry. The tool added
//! here exists only in tests.

use super::Bench;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Target, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::paths::{ExpectedKind, Paths, open_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(in crate::tools) struct CountWords;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {
    /// The file whose words are counted.
    path: String,
}

impl Tool for CountWords {
    const NAME: &'static str = "CountWords";
    const ALIASES: &'static [Alias<Arguments>] = &[Alias::with_same_arguments("wc")];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = "Counts the words of a file.\n";
    type Arguments = Arguments;
    type Work = Target;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Read { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Target>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        Ok(CallDraft::reads(format!("Count the words of {}", target.given), target.clone(), target))
    }

    fn run(target: Target, _: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            let text = std::fs::read_to_string(&target.real).map_err(|error| open_error(&target, &error))?;
            Ok(format!("{} words", text.split_whitespace().count()))
        })
    }
}

#[test]
fn an_added_tool_is_callable_by_its_names_and_follows_the_common_rules() {
    let bench = Bench::new();
    bench.write("poem.txt", "a rose is\na rose");
    for (name, argument) in [("CountWords", "path"), ("wc", "path"), ("countwords", "file_path")] {
        assert_eq!(bench.output(name, json!({argument: "poem.txt"})), "5 words", "{name}");
    }
    assert_eq!(bench.error("CountWords", json!({"path": "poem"})).0, ErrorCode::FileNotFound);
    let (code, message) = bench.error("CountWords", json!({"pathh": "poem.txt"}));
    assert_eq!(
        (code, message.as_str()),
        (ErrorCode::InvalidRequest, "`pathh` is not an argument of this tool; did you mean `path`?")
    );
}
