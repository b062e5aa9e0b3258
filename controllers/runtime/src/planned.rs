//! A `strata_plan` controller as a reconciler: observe, plan, perform.

use jiff::Timestamp;
use strata_plan::controller::{Controller, ObserveError, Plan, Watched};

use crate::breaker::Breaker;
use crate::perform::{Performed, Performer};
use crate::queue::Job;
use crate::reconcile::{Context, Outcome, Reconcile};

/// The adapter.
pub struct Planned<C>(pub C);

impl<C: Controller> Planned<C> {
    fn plan(&self, job: &Job, context: &Context) -> Result<Plan, ObserveError> {
        let observed = context.view(|view| self.0.observe(view, &job.key))?;
        Ok(observed.map_or_else(Plan::settled, |observed| self.0.plan(&observed, Timestamp::now())))
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
        let plan = match self.plan(job, context) {
            Ok(plan) => plan,
            Err(error) => return Outcome::failed(error.into()),
        };
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
        let Performed { barriers, writes, unsure, error } = performed;
        let outcome = Outcome { next: plan.next, barriers, writes, unsure, error, damped: None };
        if outcome.error.is_none() { breaker.made(suspects, outcome).await } else { outcome }
    }
}
