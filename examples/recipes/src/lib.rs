//! The service behind `docs/recipes.md` and `docs/services.md`, whose code the tests compare with
//! the files of this crate.

mod job;
mod library;
#[path = "../generated/rust/recipes.rs"]
pub mod recipes;
mod service;
mod settings;

pub use job::LongJob;
pub use service::RecipesService;
