//! Custom tools as part of a toolset. Their programs are sandboxed, limited in time and stopped like any other command.

use super::manifest::{CustomTool, ToolBody, ToolOwner};
use super::pipeline::{self, StepTool};
use super::program_files::{ResolvedProgram, ToolProgram};
use super::template;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, LeftOut, Proposal, ToolError};
use crate::sys::process::{End, FinishedRun, Shell};
use crate::tools::annotations::{READS_BY_PROGRAM, RUNS, ToolHints};
use crate::tools::call_result::{CallResult, ToolFailure, ToolOutput};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::{self, AccessRestrictions, Answer, PlannedCommand, environment_note, exec_line};
use crate::tools::shell::executed_files::PinnedFiles;
use crate::tools::shell::file_hashes::FileHashes;
use crate::tools::shell::run_command::directory;
use crate::tools::tool::{AnyTool, Payload};
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// A custom tool in a toolset, together with the tools that its steps use.
pub(in crate::tools) struct BoundTool {
    tool: Arc<CustomTool>,
    steps: Vec<StepTool>,
}

impl BoundTool {
    /// Binds a tool to the tools that its steps use. If one of them cannot be a step, the error is reported when the
    /// custom tool is called.
    pub(in crate::tools) fn new(
        tool: Arc<CustomTool>,
        all: &[Arc<CustomTool>],
        settings: &ToolSettings,
        find: &dyn Fn(&str) -> StepTool,
    ) -> Self {
        let steps = match &tool.body {
            ToolBody::Program(_) => Vec::new(),
            ToolBody::Steps(steps) => steps.iter().map(|step| pipeline::resolve_step_tool(step, all, settings, find)).collect(),
        };
        Self { tool, steps }
    }

    /// Binds a tool before the tools that its steps use are known. Until they are, only a tool that runs a program can
    /// be called.
    pub(in crate::tools) fn without_steps(tool: Arc<CustomTool>) -> Self {
        Self { tool, steps: Vec::new() }
    }
}

impl AnyTool for BoundTool {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn alias_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn capability(&self) -> &'static str {
        match &self.tool.body {
            ToolBody::Program(_) => "Shell.Exec",
            ToolBody::Steps(steps) => pipeline::capability(steps),
        }
    }

    fn description(&self) -> &str {
        &self.tool.description
    }

    /// Returns `false`. A redaction marker can be restored only when it is written to a known file, and which files
    /// this tool writes is unknown.
    fn restores(&self) -> bool {
        false
    }

    fn hints(&self) -> Option<ToolHints> {
        match &self.tool.body {
            ToolBody::Program(program) => {
                let hints = if program.reads_only { READS_BY_PROGRAM } else { RUNS };
                Some(ToolHints { open_world: !program.no_network, ..hints })
            }
            ToolBody::Steps(_) => Some(RUNS),
        }
    }

    fn schema(&self, _: &str) -> Value {
        self.tool.input.value().clone()
    }

    fn output_schema(&self) -> Option<Value> {
        match &self.tool.body {
            ToolBody::Program(program) => program.output.as_ref().map(|schema| schema.value().clone()),
            ToolBody::Steps(_) => None,
        }
    }

    fn actions(&self, _: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        match &self.tool.body {
            ToolBody::Program(program) => {
                let cwd = paths.target("cwd", ".", ExpectedKind::Directory)?;
                Ok(vec![
                    self.tool
                        .build_command(program, self.tool.check_arguments(arguments)?, &paths.settings.workspace)?
                        .action(&self.tool, cwd),
                ])
            }
            ToolBody::Steps(steps) => pipeline::actions((steps, &self.steps), &self.tool.check_arguments(arguments)?, paths),
        }
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, settings: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        let tool = &*self.tool;
        let arguments = tool.check_arguments(arguments)?;
        let program = match &tool.body {
            ToolBody::Program(program) => program,
            ToolBody::Steps(steps) => return pipeline::draft(tool, (steps, &self.steps), &arguments, settings),
        };
        let started = tool.build_command(program, arguments, &settings.workspace)?;
        let cwd = directory(None, settings)?;
        let shown = crate::policy::line(&started.words);
        let mut notes =
            vec![tool.origin(settings), format!("fingerprint {}", started.fingerprint(tool)), environment_note(settings)];
        if program.read_only_sandbox {
            notes.push("runs in a read-only sandbox".to_owned());
        }
        let timeout_seconds = program.timeout_seconds;
        let beside = tool.owns_directory().then(|| program.directory.clone());
        let sees = beside.into_iter().chain(started.print.paths()).collect();
        Ok(CallDraft {
            summary: format!("{} $ {shown}", tool.name),
            proposal: Some(Proposal { summary: format!("{} $ {shown}", tool.name), notes, ..Proposal::default() }),
            actions: vec![started.action(tool, cwd.clone())],
            effect: CallEffect::Runs { timeout_seconds, files: started.print.paths() },
            work: Box::new(PlannedCommand {
                without_stderr: false,
                line: exec_line(&started.words),
                timeout_seconds,
                stdin: started.input,
                pinned: Some(PinnedFiles::for_tool(&cwd, started.print)),
                cwd,
                opens: Vec::new(),
                background: false,
                shell: Shell::Bash,
                answer: Some(answer(&tool.name, program)),
                narrow: AccessRestrictions {
                    read_only: program.read_only_sandbox,
                    no_network: program.no_network,
                    sees,
                    ..AccessRestrictions::default()
                },
            }),
        })
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        match payload.downcast::<PlannedCommand>() {
            Ok(work) => command_run::run(*work, settings, context).boxed(),
            Err(payload) => pipeline::run(payload, settings, context).boxed(),
        }
    }
}

/// Command line of a call, its input on stdin, and the hashes of the files that it runs.
struct ProgramCommand {
    words: Vec<String>,
    input: Option<String>,
    print: FileHashes,
}

impl ProgramCommand {
    fn fingerprint(&self, tool: &CustomTool) -> String {
        self.print.fingerprint_with(&tool.hash)
    }

    fn action(&self, tool: &CustomTool, cwd: crate::protocol::Target) -> Action {
        let known = match tool.source.owner.reviewed_files() {
            None => true,
            Some((root, known)) => tool.parts.is_known(root, known) && self.print.is_known(root, known),
        };
        Action::Custom {
            name: tool.name.clone(),
            argv: self.words.clone(),
            cwd,
            input: self.input.clone(),
            fingerprint: self.fingerprint(tool),
            known,
            reads_only: matches!(&tool.body, ToolBody::Program(program) if program.reads_only),
        }
    }
}

impl CustomTool {
    /// Checks the arguments against the schema.
    ///
    /// # Errors
    ///
    /// If the arguments do not match the schema, the error states the mismatch and how to fix it.
    pub(super) fn check_arguments(&self, arguments: Map<String, Value>) -> Result<Map<String, Value>, ToolError> {
        let value = Value::Object(arguments);
        self.input
            .check(&value)
            .map_err(|why| invalid(format!("{why}; call {} with arguments that match its schema", self.name)))?;
        match value {
            Value::Object(arguments) => Ok(arguments),
            _ => Err(invalid("the arguments are not a JSON object")),
        }
    }

    fn build_command(
        &self,
        program: &ToolProgram,
        arguments: Map<String, Value>,
        workspace: &Path,
    ) -> Result<ProgramCommand, ToolError> {
        let unusable =
            |why: String| ToolError::new(ErrorCode::ToolExecutionFailed, format!("cannot start the tool {}: {why}", self.name));
        let ResolvedProgram { words, print } = program.find(workspace).map_err(unusable)?;
        if !program.by_words {
            let input = serde_json::to_string(&arguments).map_err(|error| unusable(error.to_string()))?;
            return Ok(ProgramCommand { words, input: Some(input), print });
        }
        let filled = words.iter().enumerate().filter_map(|(at, word)| match at {
            0 => Some(Ok(word.clone())),
            _ => template::fill_word(word, &arguments).transpose(),
        });
        Ok(ProgramCommand { words: filled.collect::<Result<_, _>>().map_err(invalid)?, input: None, print })
    }

    /// Describes the tool's origin for the approval prompt.
    pub(super) fn origin(&self, settings: &ToolSettings) -> String {
        let file = self.source.file.strip_prefix(&settings.workspace).unwrap_or(&self.source.file).display();
        match &self.source.owner {
            ToolOwner::User => format!("your tool: {file}"),
            ToolOwner::Project { .. } => format!("a tool from this project: {file}"),
            ToolOwner::Plugin { name, .. } => format!("a tool from the plugin {name}: {file}"),
        }
    }
}

/// Returns the function that builds the result once the program has finished.
fn answer(name: &str, program: &ToolProgram) -> Answer {
    let (name, timeout) = (name.to_owned(), program.timeout_seconds);
    let (json, schema) = (program.json, program.output.clone());
    Arc::new(move |finished: &FinishedRun, limit: usize| {
        let (stdout, stderr) = (&finished.stdout, &finished.stderr);
        let whole = || {
            let (out, first) = stdout.text_with_gap(limit);
            let (errors, second) = stderr.text_with_gap(limit / 2);
            let gap = if out.is_empty() || out.ends_with('\n') { "" } else { "\n" };
            let text = if errors.is_empty() { out } else { format!("{out}{gap}--- stderr ---\n{errors}") };
            (text.trim_end_matches('\n').to_owned(), LeftOut::from_gaps(first.into_iter().chain(second).collect(), None))
        };
        let failed = |code: ErrorCode, message: String| {
            let (printed, left_out) = whole();
            Some(Err(ToolFailure { printed, left_out, ..ToolError::new(code, message).into() }))
        };
        match finished.end {
            End::Exited(0) if json => {
                if stdout.total() > limit as u64 {
                    let message = format!("{name} printed {} bytes of JSON; the limit is {limit}", stdout.total());
                    return failed(ErrorCode::ToolExecutionFailed, message);
                }
                let printed = stdout.text(limit);
                let value: Value = match serde_json::from_str(&printed) {
                    Ok(value) => value,
                    Err(error) => {
                        let message = format!("{name} did not print a single JSON value ({error}); its output follows");
                        return failed(ErrorCode::ToolExecutionFailed, message);
                    }
                };
                if let Some(Err(why)) = schema.as_ref().map(|schema| schema.check(&value)) {
                    let message = format!("{name} printed JSON that does not match its `output_schema`: {why}");
                    return failed(ErrorCode::ToolExecutionFailed, message);
                }
                Some(Ok(printed.trim_end().to_owned().into()))
            }
            End::Exited(0) => {
                let (text, left_out) = whole();
                Some(Ok(ToolOutput { text, left_out, ..ToolOutput::default() }))
            }
            End::Exited(code) => {
                failed(ErrorCode::ToolExecutionFailed, format!("{name} failed with exit code {code}; its output follows"))
            }
            End::TimedOut => {
                let message = format!("{name} was killed after {timeout} s with all its processes; its output follows");
                failed(ErrorCode::ToolExecutionTimeout, message)
            }
            End::Signalled(_) | End::Killed | End::Interrupted | End::DiskFull | End::LayerFull | End::MemoryFull => None,
        }
    })
}
