//! The `AskUser` tool, which asks the user questions with options and returns the answers.

use crate::ports::{BoxFuture, RunContext, UserQuestions};
use crate::protocol::{
    Action, Elicitation, ElicitationAnswer, ElicitationKind, ErrorCode, QUESTION_ANSWER, QuestionOption, ToolError,
};
use crate::tools::alias::Alias;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Allowed numbers of questions in a call and of options in a question.
const QUESTIONS: RangeInclusive<usize> = 1..=4;
const OPTIONS: RangeInclusive<usize> = 2..=4;
/// Maximum numbers of characters in a question and in the parts of an option.
const QUESTION_CHARS: usize = 500;
const LABEL_CHARS: usize = 80;
const DESCRIPTION_CHARS: usize = 300;
const PREVIEW_CHARS: usize = 2_000;

pub(in crate::tools) struct AskUser;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {
    /// 1 to 4 questions.
    questions: Vec<Question>,
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// The question, as one sentence.
    question: String,
    /// 2 to 4 answers to choose from, the recommended one first. The user can also type another answer.
    options: Vec<AnswerOption>,
}

#[derive(Deserialize, JsonSchema)]
struct AnswerOption {
    /// The answer, in a few words.
    label: String,
    /// The meaning or cost of the answer.
    description: Option<String>,
    /// Code or a sketch that shows the result.
    preview: Option<String>,
}

/// A question to ask.
pub(in crate::tools) struct CheckedQuestion {
    text: String,
    options: Vec<QuestionOption>,
}

impl Tool for AskUser {
    const NAME: &'static str = "AskUser";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("ask_user"),
        Alias::with_same_arguments("AskUserQuestion"),
        Alias::with_same_arguments("ask_user_question"),
        Alias::with_same_arguments("request_user_input"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/AskUser.md");
    type Arguments = Arguments;
    type Work = Vec<CheckedQuestion>;

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(arguments: Arguments, _: &ToolSettings) -> Result<CallDraft<Self::Work>, ToolError> {
        let count = arguments.questions.len();
        if !QUESTIONS.contains(&count) {
            return Err(invalid(format!("`questions` has {count} entries; ask 1 to 4 questions per call")));
        }
        let asked: Vec<CheckedQuestion> = arguments.questions.into_iter().enumerate().map(checked).collect::<Result<_, _>>()?;
        let summary = match asked.as_slice() {
            [one] => format!("Ask: {}", one.text.lines().next().unwrap_or_default()),
            several => format!("Ask {} questions", several.len()),
        };
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Asks, work: asked })
    }

    fn run(asked: Self::Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            tokio::select! {
                text = answers(asked, &settings.session.questions) => Ok(text.into()),
                () = context.interrupt.cancelled() => {
                    Err(ToolError::new(ErrorCode::Cancelled, "the user stopped the task and did not answer").into())
                }
            }
        }
        .boxed()
    }
}

/// Checks a single question.
fn checked((at, question): (usize, Question)) -> Result<CheckedQuestion, ToolError> {
    let place = format!("questions[{at}]");
    let text = within(&format!("{place}.question"), question.question, QUESTION_CHARS)?;
    let count = question.options.len();
    if !OPTIONS.contains(&count) {
        return Err(invalid(format!("`{place}.options` has {count} entries; offer 2 to 4 options")));
    }
    let mut options: Vec<QuestionOption> = Vec::new();
    for (nth, option) in question.options.into_iter().enumerate() {
        let place = format!("{place}.options[{nth}]");
        let label = within(&format!("{place}.label"), option.label, LABEL_CHARS)?;
        if label.contains(['\n', '\r']) || options.iter().any(|other| other.label.eq_ignore_ascii_case(&label)) {
            return Err(invalid(format!("`{place}.label` must be one line that differs from the other labels")));
        }
        let optional = |name: &str, text: Option<String>, most| {
            text.filter(|text| !text.trim().is_empty()).map(|text| within(&format!("{place}.{name}"), text, most)).transpose()
        };
        let description = optional("description", option.description, DESCRIPTION_CHARS)?;
        let preview = optional("preview", option.preview, PREVIEW_CHARS)?;
        options.push(QuestionOption { label, description, preview });
    }
    Ok(CheckedQuestion { text, options })
}

fn within(place: &str, text: String, most: usize) -> Result<String, ToolError> {
    let trimmed = text.trim();
    match trimmed.chars().count() {
        0 => Err(invalid(format!("`{place}` is empty"))),
        count if count > most => Err(invalid(format!("`{place}` has {count} characters; the limit is {most}, so shorten it"))),
        _ => Ok(trimmed.to_owned()),
    }
}

/// Asks the questions one at a time and returns the answers as text. Stops at the first question that the user does not
/// answer.
async fn answers(asked: Vec<CheckedQuestion>, questions: &UserQuestions) -> String {
    let (mut text, count) = (String::new(), asked.len());
    for (at, CheckedQuestion { text: question, options }) in asked.into_iter().enumerate() {
        let wanted = ElicitationKind::Question { options, number: at + 1, count };
        let elicitation = Elicitation { elicitation_id: String::new(), server: String::new(), message: question.clone(), wanted };
        let reply = match questions.ask(elicitation).await {
            Ok(ElicitationAnswer::Accept { content }) => {
                content.get(QUESTION_ANSWER).and_then(|answer| answer.as_str()).map(str::to_owned).ok_or("[the answer is empty]")
            }
            Ok(ElicitationAnswer::Decline) => {
                Err("[the user declined to answer; do not ask again: decide, and say what you decided]")
            }
            Ok(ElicitationAnswer::Cancel) => Err("[the user did not answer]"),
            Err(_) => Err("[no user can answer here; decide, and say in your response what you assumed]"),
        };
        // Writing to a string cannot fail.
        let _ = match &reply {
            Ok(answer) => writeln!(text, "{question}\nAnswer: {answer}\n"),
            Err(why) => writeln!(text, "{question}\n{why}"),
        };
        if reply.is_err() {
            break;
        }
    }
    text.trim_end().to_owned()
}
