//! The outer loop: holds the platform to what a repository says. Applications, AppProjects and ApplicationSets are those
//! of `argoproj.io/v1alpha1`, so that manifests written for Argo CD apply as they are. Pure, as all of this crate: never
//! reads a repository, a clock or the API.

pub mod types;
pub mod spec;
pub mod operation;
pub mod project;
pub mod set;
pub mod definition;
pub mod rendered;
pub mod health;
pub mod status;
pub mod identity;
pub mod desired;
pub mod ignore;
pub mod difference;
pub mod order;
pub mod retry;
pub mod compare;
pub mod sync;
pub mod template;
pub mod generate;
pub mod permit;
pub mod decide;
