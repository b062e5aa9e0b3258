//! A `strata_plan` controller as a reconciler: observe, plan, perform.

use jiff::Timestamp;
use strata_plan::controller::{Controller, Next, ObserveError, Plan, Watched};

use crate::breaker::Breaker;
use crate::perform::{Performed, Performer};
use crate::queue::Job;
use crate::reconcile::{Context, Outcome, Reconcile};

/// The adapter.
pub struct Planned<C>(pub C);

impl<C: Controller> Planned<C> {
    fn observe(&self, job: &Job, context: &Context) -> Result<Option<C::Observed>, ObserveError> {
        context.view(|view| self.0.observe(view, &job.key))
    }

    /// Has the controller tell of what the server refused. That this fails as well is no news.
    async fn tell(&self, plan: Plan, job: &Job, context: &Context, outcome: &mut Outcome) {
        let performer = Performer::new(&context.client, &context.recorder, self.name(), job);
        let told = performer.all(plan.actions, context.deadline()).await;
        outcome.barriers.extend(told.barriers);
        outcome.unsure.extend(told.unsure);
        outcome.writes += told.writes;
        if let Some(error) = told.error {
            tracing::debug!(error = error.sentence(), "what was refused is not told yet");
        }
    }
}

impl<C: Controller> Reconcile for Planned<C> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn watches(&self) -> Vec<Watched> {
        self.0.watches()
    }

    async fn reconcile(&self, job: &Job, context: &Context) -> Outcome {
        let observed = match self.observe(job, context) {
            Ok(Some(observed)) => observed,
            Ok(None) => return Outcome::settled(Next::OnChange),
            Err(error) => return Outcome::failed(error.into()),
        };
        let plan = self.0.plan(&observed, Timestamp::now());
        for note in &plan.notes {
            tracing::debug!(reason = note.reason, message = note.message, "held");
        }
        let breaker = Breaker::new(context, self.name(), &job.key);
        if plan.is_settled() {
            return breaker.settled(plan.next).await;
        }
        let suspects = breaker.suspects(&plan.actions).await;
        let performer = Performer::new(&context.client, &context.recorder, self.name(), job);
        let performed = performer.all(plan.actions, context.deadline()).await;
        let Performed { barriers, writes, unsure, error, refusal } = performed;
        let mut outcome = Outcome { next: plan.next, barriers, writes, unsure, error, damped: None };
        if let Some(refusal) = refusal {
            let plan = self.0.refused(&observed, &refusal, Timestamp::now());
            self.tell(plan, job, context, &mut outcome).await;
        }
        if outcome.error.is_none() { breaker.made(suspects, outcome).await } else { outcome }
    }
}
