//! Questions that have been sent to the editor and not been answered yet.

use super::EditorSession;
use crate::acp::client::Client;
use crate::acp::diffs::{self, Direction};
use crate::acp::permission::{self, PermissionOutcome};
use crate::acp::{calls, slash};
use crate::protocol::{
    Approval, ApprovalId, Command, Decision, Elicitation, ElicitationAnswer, HostCommand, QuestionOption, RewindPlan,
    RewindScope, RewindTarget,
};
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// ID prefix of an option that answers a question from the model. It is followed by the index of the option.
const ANSWER: &str = "answer-";
const DECLINE: &str = "decline";

/// Subject of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Approval, with the decision for each option that leaves out one path.
    Approval(ApprovalId, Vec<Decision>),
    Rewind(RewindTarget, RewindScope),
    /// Question from the model, with its ID and the labels of its options.
    Model(String, Vec<String>),
}

/// Number of a question and the editor's response to it. The response is `None` if the question was withdrawn.
type Answer = (u64, Option<Result<RequestPermissionResponse, String>>);

#[derive(Default)]
pub(crate) struct PendingQuestions {
    answers: FuturesUnordered<BoxFuture<'static, Answer>>,
    open: HashMap<u64, (Question, CancellationToken)>,
    asked: u64,
}

impl PendingQuestions {
    fn ask(&mut self, client: &Client, question: Question, request: RequestPermissionRequest) {
        self.asked += 1;
        let (number, withdrawn) = (self.asked, CancellationToken::new());
        self.open.insert(number, (question, withdrawn.clone()));
        let answer = client.ask(request);
        let answer = async move {
            tokio::select! {
                answer = answer => (number, Some(answer)),
                // Notify the editor that the answer is no longer needed.
                () = withdrawn.cancelled() => (number, None),
            }
        };
        self.answers.push(answer.boxed());
    }

    /// Waits for the next answer. Returns `None` if there are no open questions.
    pub(crate) async fn next(&mut self) -> Option<Answer> {
        self.answers.next().await
    }

    /// Withdraws the question about an approval, and notifies the editor.
    pub(crate) fn withdraw(&mut self, id: &ApprovalId) {
        let own = |_: &u64, (question, _): &mut (Question, CancellationToken)| matches!(question, Question::Approval(asked, _) if asked == id);
        self.open.extract_if(own).for_each(|(_, (_, withdrawn))| withdrawn.cancel());
    }

    /// Withdraws a question from the model, and notifies the editor.
    pub(crate) fn withdraw_question(&mut self, id: &str) {
        let own = |_: &u64, (question, _): &mut (Question, CancellationToken)| matches!(question, Question::Model(asked, _) if asked == id);
        self.open.extract_if(own).for_each(|(_, (_, withdrawn))| withdrawn.cancel());
    }

    pub(crate) fn withdraw_all(&mut self) {
        self.open.drain().for_each(|(_, (_, withdrawn))| withdrawn.cancel());
    }

    /// Drops all questions because the editor stopped the prompt. The editor then responds to them on its own, and
    /// these responses are ignored.
    pub(crate) fn forget_all(&mut self) {
        self.open.clear();
    }
}

impl EditorSession {
    pub(super) async fn ask(&mut self, approval: &Approval) {
        let looks = self.client.looks;
        let proposal = &approval.proposal;
        let paths = (&proposal.paths[..], self.mapper.directory());
        let (mut content, left_out) = diffs::contents(&proposal.diff, paths, &*self.files, Direction::Forth).await;
        if left_out > 0 {
            content.push(calls::text_content(format!("{left_out} more changes are not shown here")));
        }
        content.extend(permission::contents(approval, looks));
        let title = calls::title(&(looks.reveal)(&approval.action_summary));
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .kind(self.mapper.tool_kind(&approval.tool_call_id))
            .status(ToolCallStatus::Pending)
            .locations(calls::change_locations(&proposal.paths, &proposal.diff, self.mapper.directory()))
            .content(content);
        let call = ToolCallUpdate::new(self.mapper.name(&approval.tool_call_id), fields);
        let request = RequestPermissionRequest::new(self.id.to_string(), call, permission::options(approval, looks));
        let question = Question::Approval(approval.approval_id.clone(), permission::partial_decisions(approval));
        self.asking.ask(&self.client, question, request);
    }

    /// Asks the user to confirm a rewind, showing what it would do.
    pub(super) async fn ask_rewind(&mut self, plan: &RewindPlan) {
        let looks = self.client.looks;
        let paths = (&[][..], self.mapper.directory());
        let (mut content, _) = diffs::contents(&plan.diff, paths, &*self.files, Direction::Forth).await;
        content.push(calls::text_content((looks.reveal)(&slash::rewind(plan)).into_owned()));
        let title = if plan.target == RewindTarget::Redo { "Redo the last rewind" } else { "Rewind one prompt" };
        let fields = ToolCallUpdateFields::new()
            .title(title.to_owned())
            .kind(ToolKind::Edit)
            .status(ToolCallStatus::Pending)
            .content(content);
        let options = vec![
            PermissionOption::new("allow", "Rewind", PermissionOptionKind::AllowOnce),
            PermissionOption::new("reject", "Cancel", PermissionOptionKind::RejectOnce),
        ];
        self.rewinds += 1;
        let call = ToolCallUpdate::new(format!("rewind-{}", self.rewinds), fields);
        let request = RequestPermissionRequest::new(self.id.to_string(), call, options);
        self.asking.ask(&self.client, Question::Rewind(plan.target.clone(), plan.scope), request);
    }

    /// Forwards a question from the model to the editor, which displays it like an approval prompt with an option for
    /// each answer.
    pub(super) fn ask_for_model(&mut self, asked: &Elicitation, options: &[QuestionOption]) {
        let looks = self.client.looks;
        let reveal = |text: &str| (looks.reveal)(text).into_owned();
        let mut content = vec![calls::text_content(reveal(&asked.message))];
        for option in options {
            let about = [option.description.as_deref(), option.preview.as_deref()].into_iter().flatten();
            content.extend(about.map(|text| calls::text_content(format!("**{}**\n{}", reveal(&option.label), reveal(text)))));
        }
        let title = calls::title(&reveal(&asked.message));
        let fields =
            ToolCallUpdateFields::new().title(title).kind(ToolKind::Think).status(ToolCallStatus::Pending).content(content);
        let named = |(at, option): (usize, &QuestionOption)| {
            PermissionOption::new(format!("{ANSWER}{at}"), calls::title(&reveal(&option.label)), PermissionOptionKind::AllowOnce)
        };
        let mut answers: Vec<PermissionOption> = options.iter().enumerate().map(named).collect();
        answers.push(PermissionOption::new(DECLINE, "Decline to answer", PermissionOptionKind::RejectOnce));
        let call = ToolCallUpdate::new(asked.elicitation_id.clone(), fields);
        let request = RequestPermissionRequest::new(self.id.to_string(), call, answers);
        let labels = options.iter().map(|option| option.label.clone()).collect();
        self.asking.ask(&self.client, Question::Model(asked.elicitation_id.clone(), labels), request);
    }

    /// Passes the answer to a question on to the model.
    async fn model_answered(
        &mut self,
        (elicitation_id, labels): (String, Vec<String>),
        answer: Result<RequestPermissionResponse, String>,
    ) {
        let chosen = match answer.map(|response| response.outcome) {
            Ok(RequestPermissionOutcome::Selected(selected)) => {
                let at = selected.option_id.0.strip_prefix(ANSWER).and_then(|at| at.parse::<usize>().ok());
                at.and_then(|at| labels.into_iter().nth(at))
            }
            Ok(_) => return self.cancel().await,
            Err(_) => None,
        };
        let answer = chosen.map_or(ElicitationAnswer::Decline, ElicitationAnswer::to_question);
        self.send(HostCommand::AnswerElicitation { elicitation_id, answer }).await;
    }

    pub(super) async fn on_answer(&mut self, (number, answer): Answer) {
        let (Some((question, _)), Some(answer)) = (self.asking.open.remove(&number), answer) else { return };
        let question = match question {
            Question::Model(id, labels) => return self.model_answered((id, labels), answer).await,
            question => question,
        };
        let partial = match &question {
            Question::Approval(_, partial) => partial.as_slice(),
            Question::Rewind(..) | Question::Model(..) => &[],
        };
        let answered = permission::parse_outcome(answer, partial);
        match (question, answered) {
            (_, PermissionOutcome::Stopped) => self.cancel().await,
            (Question::Approval(approval_id, _), PermissionOutcome::Decided(decision)) => {
                self.send(Command::Decide { approval_id, decision }).await;
            }
            (Question::Rewind(target, scope), PermissionOutcome::Decided(Decision::Approved)) => {
                self.send(Command::Rewind { target, scope, overwrite: Vec::new() }).await;
            }
            (Question::Rewind(..), PermissionOutcome::Decided(_)) => self.finish("Nothing was changed.").await,
            // These cases are handled above.
            (Question::Model(..), PermissionOutcome::Decided(_)) => {}
        }
    }
}
