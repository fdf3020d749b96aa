//! The exported symbol of the library.

thalweg_capi::export!(
    crate::recipes::RecipesServer<crate::RecipesService>,
    crate::recipes::RecipesServer::new(crate::RecipesService::default())
);
