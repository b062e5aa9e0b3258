//! What the loop asks of those who read repositories. Knows no repository.

use strata_model::object::ObjectKey;
use strata_plan::application::rendered::{RenderError, Rendered};
use strata_plan::application::spec::Source;

/// How new an answer must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fresh {
    /// What is known on disk will do, if the revision can be told from it; else the repository is asked.
    Known,
    /// Branches and tags are looked up in the repository now.
    #[default]
    Now,
    /// Nothing that was rendered before counts either.
    Hard,
}

/// A question: what do these sources say?
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// The Application that asks: its name is that of a Helm release unless said.
    pub app: ObjectKey,
    /// The namespace of its destination.
    pub namespace: String,
    /// The sources, in order; `targetRevision` may be a commit.
    pub sources: Vec<Source>,
}

/// What a commit has: all its folders, and the texts of the files that were chosen.
pub type Listed = (Vec<String>, Vec<(String, String)>);

/// Reads repositories. Cheap to ask where nothing changed; bounded in time and memory by itself.
pub trait Repositories: Send + Sync + 'static {
    /// Renders all sources of a question, in order; sources that are only referred to answer no manifests.
    fn render(
        &self,
        ask: &Ask,
        fresh: Fresh,
    ) -> impl Future<Output = Result<Vec<Rendered>, RenderError>> + Send;

    /// Lists a commit of a repository; `chosen` says by path which files are read.
    fn list(
        &self,
        url: &str,
        revision: &str,
        fresh: Fresh,
        chosen: impl Fn(&str) -> bool + Send + 'static,
    ) -> impl Future<Output = Result<Listed, RenderError>> + Send;
}
