version = "0.1.0"
author = "The authors of Thalweg"
description = "Calls services in Thalweg libraries"
license = "MIT OR Apache-2.0"
srcDir = "src"

requires "nim >= 1.6.0"
