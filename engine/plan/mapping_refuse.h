/* mapping_refuse.h - what is said where image and network have other numbers of channels. */
#ifndef TGI_MAPPING_REFUSE_H
#define TGI_MAPPING_REFUSE_H

#include "engine/plan/mapping.h"

/* The image has `has` channels: which of them the network gets is for somebody to say. */
tg_status tgi_mapping_refuse_channels(const tgi_mapping *m, const tgi_mapping_opts *o,
                                      const tgi_image_info *info, int64_t has, tgi_err *err);
/* Its pixels have several samples, and no axis numbers channels. */
tg_status tgi_mapping_refuse_samples(const tgi_mapping *m, const tgi_mapping_opts *o,
                                     const tgi_image_info *info, tgi_err *err);
/* Somebody chose (o->choice), and it is another number. */
tg_status tgi_mapping_refuse_choice(const tgi_mapping *m, const tgi_mapping_opts *o,
                                    tgi_err *err);
/* 1: some of the channels that the network names are the image's, and others are not; `buf` receives both lists. */
int tgi_mapping_other_names(const tgi_mapping *m, const tgi_mapping_opts *o,
                            const tgi_image_info *info, char *buf, size_t cap);
/* 1: the image's channels have the names of the network's in another order; `buf` receives how --channels would
 * bring them into the network's. */
int tgi_mapping_other_order(const tgi_mapping *m, const tgi_mapping_opts *o,
                            const tgi_image_info *info, char *buf, size_t cap);

#endif
