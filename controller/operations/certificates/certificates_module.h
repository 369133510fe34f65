#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::certificate_change {

const OperationModule& certificates_module();

}  // namespace verger::controller::certificate_change
